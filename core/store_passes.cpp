// SPDX-License-Identifier: BSD-3-Clause
#include "core/error.hpp"
#include "core/parameter_store.hpp"

#include <algorithm>
#include <string>

namespace distzo2 {

// The passes over streamed units: which, in what order, and when they are written back.

bool ParameterStore::streams_tensor(int tensor) const {
  return std::ranges::any_of(units_of(tensor), [&](int u) { return streams(u); });
}

bool ParameterStore::in_turn(int unit, std::uint32_t next) const {
  const std::uint32_t r = rule_.round_every, every = placement_.write_back_every / r;
  if (every <= 1) return next % r == 0;
  // Turns are spread over the units, so that every step writes about as much.
  return next % r == 0 && (next / r + static_cast<std::uint32_t>(unit)) % every == 0;
}

void ParameterStore::order_of_pass(std::uint32_t next, std::vector<int>& order) const {
  order.clear();
  if (head_matrix_ != token_table)
    for (const int u : units_of(token_table))
      if (streams(u) && in_turn(u, next) && version_[size(placement_.units[size(u)].chunk_begin)] < next)
        order.push_back(u);
  order.insert(order.end(), forward_order_.begin(), forward_order_.end());
}

void ParameterStore::begin_pass(int head_matrix) {
  if (slices_) begin_slices();
  if (!pipeline_) return;
  if (forward_order_.empty() || head_matrix != head_matrix_) {
    head_matrix_ = head_matrix;
    forward_order_.clear();
    const auto add = [&](int unit) {
      if (streams(unit)) forward_order_.push_back(unit);
    };
    for (int b = 0; b < std::ssize(table_.blocks); ++b) {
      if (!is_decoder(table_, b)) continue;
      const int begin = placement_.unit_begin[size(b)], end = placement_.unit_begin[size(b) + 1];
      // One-dimensional tensors stand last in their block and are used first.
      for (int u = begin; u < end; ++u)
        if (placement_.units[size(u)].vectors) add(u);
      for (int u = begin; u < end; ++u)
        if (!placement_.units[size(u)].vectors) add(u);
    }
    for (const int u : units_of(head_matrix)) add(u);
    order_.reserve(placement_.units.size());
    next_order_.reserve(placement_.units.size());
  }
  order_of_pass(next_, order_);
  // A guess at the next pass, of which the first units are fetched ahead. A second pass without a step between them is
  // of an evaluation, which has more like it; otherwise a step follows. Where the guess is wrong, as after an
  // evaluation's last pass, the pipeline drops what it has fetched: a few units are read for nothing.
  if (next_ == last_pass_)
    next_order_ = forward_order_;
  else
    order_of_pass(next_ + 1, next_order_);
  last_pass_ = next_;
  pipeline_->begin_pass(order_, next_, units_fetched_ahead(next_order_));
}

void ParameterStore::update_streamed_table() {
  if (!pipeline_ || head_matrix_ == token_table || !streams_tensor(token_table)) return;
  const auto in_pass = std::span(order_).first(order_.size() - forward_order_.size());
  for (const int u : units_of(token_table)) {
    if (streams(u) && std::ranges::find(in_pass, u) == in_pass.end()) continue;
    open(u);
    const Weight w = rows_in(token_table, u);
    if (first_row(token_table, u) == 0) sample_rounding_of(w);
    apply_pending(w);
    absorbed_rows(token_table, u);
    close(u);
  }
}

void ParameterStore::end_pass() {
  if (pipeline_) pipeline_->end_pass();
}

void ParameterStore::open(int unit) {
  if (!streams(unit)) return;
  open_[size(unit)] = pipeline_->acquire(unit);
  const Unit& u = placement_.units[size(unit)];
  for (int c = u.chunk_begin; c < u.chunk_end; ++c) {
    if (version_[size(c)] != version_[size(u.chunk_begin)])  // level_versions was not called
      throw Error(ExitCode::internal, "the chunks of unit " + std::to_string(unit) + " have different versions");
    seen_[size(c)] = version_[size(c)];
  }
}

void ParameterStore::close(int unit, bool in_any_case) {
  if (!streams(unit)) return;
  const Unit& u = placement_.units[size(unit)];
  const std::uint32_t version = seen_[size(u.chunk_begin)];
  bool changed = false;
  for (int c = u.chunk_begin; c < u.chunk_end; ++c) {
    changed = changed || version_[size(c)] != version;
  }
  const bool write = changed && (in_any_case || in_turn(unit));
  if (write) std::fill_n(version_.begin() + u.chunk_begin, u.chunk_end - u.chunk_begin, version);
  open_[size(unit)] = nullptr;
  pipeline_->release(unit, write, version);
}

void ParameterStore::open_block(int block) {
  if (slices_) {  // own slices ahead, so that they are there when the others come to that block
    update_slices(block + 1);
    await_slices(block);
  }
  if (!is_decoder(table_, block))
    return;  // what streams of the first and the last block is gathered, or opened in ranges
  for (int u = placement_.unit_begin[size(block)]; u < placement_.unit_begin[size(block) + 1]; ++u)
    if (!placement_.groups || placement_.units[size(u)].vectors) open(u);
}

void ParameterStore::close_block(int block) {
  if (!is_decoder(table_, block)) return;
  for (int u = placement_.unit_begin[size(block)]; u < placement_.unit_begin[size(block) + 1]; ++u)
    if (!placement_.groups || placement_.units[size(u)].vectors) close(u);
}

Weight ParameterStore::open_matrix(int tensor) {
  for (const int u : units_of(tensor)) open(u);
  return weight(tensor);
}

void ParameterStore::close_matrix(int tensor) {
  for (const int u : units_of(tensor)) close(u);
}

}  // namespace distzo2
