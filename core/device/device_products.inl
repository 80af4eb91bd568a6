// SPDX-License-Identifier: BSD-3-Clause
// DeviceBackend's members that multiply: what goes into the library, a layer's products, the head's. Included by
// device_backend.inl.
#include "core/device/device_backend.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cstring>

namespace distzo2 {

template <class Space>
typename DeviceBackend<Space>::Input DeviceBackend<Space>::input_of(const Rows& x) {
  if (compute_ == Compute::fp32)
    return {reinterpret_cast<const std::byte*>(x.data), x.row_stride,
            x.evaluation_stride * static_cast<std::int64_t>(sizeof(float))};
  const std::int64_t padded = round_up(x.tokens, device_row_tile), c = bytes_of(compute_);
  const std::int64_t evaluation_bytes = padded * x.features * c;
  std::byte* const out = rounded_.at_least(exec_, static_cast<std::size_t>(x.evaluations * evaluation_bytes));
  round_rows<Space>(exec_, out, x, compute_, padded);
  return {out, x.features, evaluation_bytes};
}

/// c (rows, n) (+)= rows [first_row, first_row + rows) of x's evaluation times w (n, k); c has room for whole tiles.
template <class Space>
void DeviceBackend<Space>::multiply(const Input& x, int evaluation, int first_row, int rows, const std::byte* w, int n,
                                    int k, float* c, std::int64_t ldc, bool add) {
  const int step = reproducible_ ? device_row_tile : rows;
  for (int row = 0; row < rows; row += step) {
    const std::byte* const a = x.data + evaluation * x.evaluation_bytes +
                               (first_row + row) * x.lda * static_cast<std::int64_t>(bytes_of(compute_));
    const DeviceProduct product{step, n, k, a, x.lda, w, c + row * ldc, ldc, add};
    gemm_->run(product);
  }
  gemm_flop_ += 2.0 * rows * static_cast<double>(n) * k;
}

template <class Space>
void DeviceBackend<Space>::linear(std::initializer_list<Product> products, const Rows& x) {
  const Input input = input_of(x);
  for (const Product& product : products) {
    const Weight& w = product.w;
    const std::byte* const made = make(w);
    for (int e = 0; e < x.evaluations; ++e)
      multiply(input, e, 0, x.tokens, made + e * w.rows * w.cols * static_cast<std::int64_t>(bytes_of(compute_)),
               static_cast<int>(w.rows), static_cast<int>(w.cols), product.y.row(e, 0), product.y.row_stride,
               product.add);
    if (product.bias != nullptr) add_bias_rows<Space>(exec_, product.y, product.bias);
  }
}

template <class Space>
void DeviceBackend<Space>::begin_head(const Rows& x, std::span<const HeadTerm> terms) {
  head_rows_ = x;
  head_input_ = input_of(x);
  // Terms by row, as rows of a sparse matrix.
  terms_begin_.assign(static_cast<std::size_t>(x.tokens) + 1, 0);
  term_of_row_.resize(terms.size());
  targets_.resize(terms.size());
  rows_of_terms_.resize(terms.size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    targets_[i] = terms[i].target;
    rows_of_terms_[i] = terms[i].row;
    ++terms_begin_[static_cast<std::size_t>(terms[i].row) + 1];
  }
  for (std::size_t r = 1; r < terms_begin_.size(); ++r) terms_begin_[r] += terms_begin_[r - 1];
  for (std::size_t i = terms.size(); i-- > 0;) {  // from the back: each row's end moves to its begin
    auto& end = terms_begin_[static_cast<std::size_t>(terms[i].row) + 1];
    term_of_row_[static_cast<std::size_t>(--end)] = static_cast<std::int32_t>(i);
  }
  terms_begin_.erase(terms_begin_.begin());
  terms_begin_.push_back(static_cast<std::int32_t>(terms.size()));

  const std::size_t evaluations = perturbation_->evaluations.size();
  const std::size_t rows = evaluations * static_cast<std::size_t>(x.tokens), all = evaluations * terms.size();
  auto* const doubles = reinterpret_cast<double*>(softmax_.at_least(exec_, 2 * (rows + all) * sizeof(double)));
  head_ = {doubles,
           doubles + rows,
           doubles + 2 * rows,
           doubles + 2 * rows + all,
           put(terms_begin_),
           put(term_of_row_),
           put(targets_),
           put(rows_of_terms_),
           x.evaluations,
           x.tokens,
           static_cast<int>(terms.size())};
  start_softmax<Space>(exec_, head_);
}

template <class Space>
template <class Use>
void DeviceBackend<Space>::for_each_logits(const Weight& w, std::int64_t first_row, const Rows& x, const Input& input,
                                           const Use& use) {
  auto* const logits = reinterpret_cast<float*>(logits_.at_least(exec_, device_logits_bytes));
  std::int64_t n = 0;
  for (std::int64_t row = 0; row < w.rows; row += n) {
    const std::int64_t in_chunk = (first_row + row) % head_chunk_;
    n = std::min({head_step_ - in_chunk % head_step_, head_chunk_ - in_chunk, w.rows - row});
    const std::byte* const made = make(rows_of(w, row, row + n));
    const auto room = static_cast<int>(static_cast<std::int64_t>(device_logits_bytes / sizeof(float)) / n);
    const int rows_at_once = std::max(room / device_row_tile, 1) * device_row_tile;
    for (int e = 0; e < x.evaluations; ++e)
      for (int begin = 0; begin < x.tokens; begin += rows_at_once) {
        const int rows = std::min(rows_at_once, x.tokens - begin);
        multiply(input, e, begin, rows, made + e * n * w.cols * static_cast<std::int64_t>(bytes_of(compute_)),
                 static_cast<int>(n), static_cast<int>(w.cols), logits, n, false);
        use(row, static_cast<int>(n), begin, rows, e, logits);
      }
  }
}

template <class Space>
void DeviceBackend<Space>::add_head_rows(const Weight& w, std::int64_t first_row) {
  for_each_logits(w, first_row, head_rows_, head_input_,
                  [&](std::int64_t row, int n, int begin, int rows, int e, const float* logits) {
                    add_logits<Space>(exec_, head_, logits, e, begin, rows, first_row + row, n);
                  });
}

template <class Space>
void DeviceBackend<Space>::finish_head(double* log_prob) {
  finish_softmax<Space>(exec_, head_);
  const std::size_t bytes =
      static_cast<std::size_t>(head_.evaluations) * static_cast<std::size_t>(head_.terms) * sizeof(double);
  reserve_results(bytes);
  Space::copy(exec_, results_.get(), head_.log_prob, bytes);
  Space::wait(exec_);  // a step's one wait
  tables_.waited();
  std::memcpy(log_prob, results_.get(), bytes);
}

template <class Space>
void DeviceBackend<Space>::logits(const Rows& out, const Weight& w, const Rows& x) {
  for_each_logits(w, 0, x, input_of(x), [&](std::int64_t row, int n, int begin, int rows, int e, const float* logits) {
    for (int i = 0; i < rows; ++i)
      Space::copy(exec_, out.row(e, begin + i) + row, logits + std::int64_t{i} * n,
                  static_cast<std::size_t>(n) * sizeof(float));
    Space::wait(exec_);
  });
}

}  // namespace distzo2
