// SPDX-License-Identifier: BSD-3-Clause
#include "core/tensor_table.hpp"

#include "core/error.hpp"
#include "core/round_up.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace distzo2 {
namespace {

// Far beyond any model, far below where sums of indices could wrap.
constexpr std::int64_t most_indices = std::int64_t{1} << 56;

void append_tensor(TensorTable& table, const TensorSpec& spec, int block) {
  const bool sound = spec.rows > 0 && spec.cols > 0 && spec.rows <= most_indices / spec.cols &&
                     spec.rows * spec.cols <= most_indices - table.index_end;
  if (!sound) {
    throw Error(ExitCode::file, "tensor " + spec.name + " of " + std::to_string(spec.rows) + " x " +
                                    std::to_string(spec.cols) +
                                    ": each side must be at least 1 and a model at most 2^56");
  }
  Tensor t{spec.name, spec.rows, spec.cols, spec.matrix, table.index_end, block};
  table.index_end += t.size();
  table.parameters += t.size();
  table.tensors.push_back(std::move(t));
}

}  // namespace

TensorTable make_tensor_table(const std::vector<std::vector<TensorSpec>>& blocks) {
  TensorTable table;
  for (int b = 0; b < static_cast<int>(blocks.size()); ++b) {
    Block block;
    table.index_end = round_up(table.index_end, index_alignment);
    block.first = table.index_end;
    block.tensor_begin = static_cast<int>(table.tensors.size());
    for (const TensorSpec& spec : blocks[b]) {
      if (spec.matrix) append_tensor(table, spec, b);
    }
    table.index_end = round_up(table.index_end, index_alignment);
    block.vectors_first = table.index_end;
    for (const TensorSpec& spec : blocks[b]) {
      if (!spec.matrix) append_tensor(table, spec, b);
    }
    block.end = table.index_end;
    block.tensor_end = static_cast<int>(table.tensors.size());
    table.blocks.push_back(block);
  }
  return table;
}

std::uint64_t decay_mask_digest(const TensorTable& table) {
  static_assert(std::endian::native == std::endian::little, "hashed as they stand in memory");
  std::vector<std::int64_t> bounds;  // of runs: begin, end, begin, end, ...
  for (const Tensor& t : table.tensors) {
    if (!t.matrix) continue;
    if (bounds.empty() || bounds.back() != t.first)
      bounds.insert(bounds.end(), {t.first, t.first + t.size()});
    else
      bounds.back() += t.size();
  }
  return XXH3_64bits(bounds.data(), bounds.size() * sizeof bounds[0]);
}

int find_tensor(const TensorTable& table, std::string_view name) {
  const auto found = std::ranges::find(table.tensors, name, &Tensor::name);
  return found == table.tensors.end() ? -1 : static_cast<int>(found - table.tensors.begin());
}

}  // namespace distzo2
