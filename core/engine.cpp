// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine.hpp"

#include "core/error.hpp"
#include "core/log_prob_head.hpp"
#include "core/models/activations.hpp"
#include "core/models/family.hpp"
#include "core/panels.hpp"
#include "core/round_up.hpp"

#include <gnu/libc-version.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace distzo2 {

TensorTable tensor_table(const ModelConfig& config) {
  return family_of(config.family).table(config);
}

struct Engine::Impl {
  Impl(ModelConfig model, UpdateRule rule, Compute c, const Placement& placement, BlockStorage* disk,
       const UnitPipeline::Options& options)
      : config(std::move(model)),
        family(family_of(config.family)),
        compute(c),
        arena(make_kokkos_arena()),
        store(family.table(config), rule, *arena, placement, disk, options),
        head_matrix(family.head_matrix(config, store.table())),
        panels(exec) {}

  HostExec exec;
  ModelConfig config;
  const Family& family;
  Compute compute;
  std::unique_ptr<HostArena> arena;
  ParameterStore store;
  int head_matrix;  // tensor; in block 0 where the head is tied
  PanelScratch panels;
  Activations activations;
  ActivationBuffer hidden{"distzo2::hidden"};
  ActivationBuffer head_rows{"distzo2::head_rows"};
  // Of the pass: kept, so that a step allocates nothing.
  std::vector<Weight> weights;
  std::vector<int> head_tokens, row_of_token;
  std::vector<HeadTerm> head_terms;

  int last_block() const { return static_cast<int>(store.table().blocks.size()) - 1; }

  /// Opens a block. What no GEMM passes over is brought up to date at once: vectors, and lookup tables in memory. A
  /// tied embedding is left to the head's pass; lookups replay its pending records for the rows that they read.
  std::span<const Weight> weights_of(int block) {
    store.open_block(block);
    store.apply_pending_vectors(block);
    const Block& b = store.table().blocks[static_cast<std::size_t>(block)];
    weights.clear();
    for (int i = b.tensor_begin; i < b.tensor_end; ++i) {
      const bool looked_up = block == 0 && i != head_matrix && !store.streams_tensor(i);
      if (looked_up && store.table().tensors[static_cast<std::size_t>(i)].matrix) store.apply_pending_matrix(i);
      weights.push_back(store.weight(i));
      if (i != head_matrix && weights.back().data != nullptr) store.sample_rounding_of(weights.back());
    }
    return weights;
  }

  /// The tokens that loss terms read, each once, and the terms as the head sees them: one-token candidates of an
  /// example read the same row.
  void gather_head(const PackedBatch& batch) {
    head_tokens.clear();
    head_terms.clear();
    row_of_token.assign(batch.ids.size(), -1);
    for (const LossTerm& term : batch.terms) {
      int& row = row_of_token.at(static_cast<std::size_t>(term.token));
      if (row < 0) {
        row = static_cast<int>(head_tokens.size());
        head_tokens.push_back(term.token);
      }
      head_terms.push_back({row, term.target});
    }
  }

  /// All stages up to the rows that the head matrix is multiplied with: (evaluations, head_tokens, width).
  Rows run_stages(const PackedBatch& batch, const Perturbation& p) {
    check_batch(batch, config.vocab);
    const int evaluations = static_cast<int>(p.evaluations.size());
    // 1. The residual stream of all evaluations.
    StageContext ctx{exec,        config,  batch,
                     p,           compute, hidden.shape(evaluations, batch.tokens(), width(config.hidden)),
                     activations, panels,  store};
    // 2. Embedding: where it is streamed, the rows that the batch looks up.
    store.begin_pass(head_matrix);
    weights_of(0);
    if (store.streams_tensor(token_table)) weights[token_table] = store.gather_rows(token_table, batch.ids);
    family.embedding(ctx, weights);
    // 3. Decoder blocks.
    for (int layer = 0; layer < config.layers; ++layer) {
      family.block(ctx, weights_of(layer + 1), layer);
      store.close_block(layer + 1);
    }
    // 4. The rows that the loss terms read, normed.
    const Rows rows = head_rows.shape(evaluations, static_cast<int>(head_tokens.size()),
                                      width(store.table().tensors[static_cast<std::size_t>(head_matrix)].cols));
    family.head(ctx, weights_of(last_block()), head_tokens, rows);
    return rows;
  }

  /// use(rows of the head matrix, first row) for all of it, a unit at a time; then the pass is over.
  template <class Use>
  void pass_over_head(const Use& use) {
    for (const int unit : store.units_of(head_matrix)) {
      store.open(unit);
      const Weight w = store.rows_in(head_matrix, unit);
      const std::int64_t first_row = store.first_row(head_matrix, unit);
      if (first_row == 0) store.sample_rounding_of(w);
      use(w, first_row);
      store.absorbed_rows(head_matrix, unit);
      store.close(unit);
    }
    store.end_pass();
  }

  static int width(std::int64_t features) { return static_cast<int>(features); }
};

Engine::Engine(ModelConfig config, UpdateRule rule, Compute compute)
    : Engine(config, rule, compute, resident_placement(tensor_table(config), rule.storage), nullptr) {}
Engine::Engine(ModelConfig config, UpdateRule rule, Compute compute, const Placement& placement, BlockStorage* disk,
               const UnitPipeline::Options& options)
    : impl_(std::make_unique<Impl>(std::move(config), rule, compute, placement, disk, options)) {}
Engine::~Engine() = default;

const ModelConfig& Engine::config() const {
  return impl_->config;
}
ParameterStore& Engine::store() {
  return impl_->store;
}
const ParameterStore& Engine::store() const {
  return impl_->store;
}

void Engine::forward(const PackedBatch& batch, const Perturbation& perturbation, std::span<double> log_prob) {
  Impl& m = *impl_;
  m.gather_head(batch);
  const Rows rows = m.run_stages(batch, perturbation);
  LogProbHead head(m.exec, rows, m.head_terms, perturbation, m.compute, m.panels);
  m.pass_over_head([&](const Weight& w, std::int64_t first_row) { head.add(w, first_row); });
  head.finish(log_prob.data());
}

void Engine::logits(const PackedBatch& batch, const Perturbation& perturbation, std::span<float> logits) {
  Impl& m = *impl_;
  m.head_tokens.clear();
  for (const LossTerm& term : batch.terms) m.head_tokens.push_back(term.token);
  const Rows rows = m.run_stages(batch, perturbation);
  const std::int64_t vocab = m.store.table().tensors[static_cast<std::size_t>(m.head_matrix)].rows;
  const Rows out{logits.data(), rows.evaluations, rows.tokens, static_cast<int>(vocab), vocab, rows.tokens * vocab};
  m.pass_over_head([&](const Weight& w, std::int64_t first_row) {
    linear(m.exec, {{out.columns(static_cast<int>(first_row), static_cast<int>(w.rows)), w}}, rows, perturbation,
           m.compute, m.panels);
  });
}

std::size_t Engine::activation_bytes() const {
  return impl_->hidden.bytes() + impl_->head_rows.bytes() + impl_->activations.bytes() + impl_->panels.bytes();
}

PassTimes Engine::take_times() {
  PassTimes times;
  auto& threads = impl_->panels.threads();
  for (ThreadPanels& t : threads) {
    times.weights_s += std::exchange(t.z_s, 0.0) / static_cast<double>(threads.size());
    times.gemm_s += std::exchange(t.gemm_s, 0.0) / static_cast<double>(threads.size());
    times.product_s += std::exchange(t.product_s, 0.0) / static_cast<double>(threads.size());
  }
  times.attention_s = std::exchange(impl_->activations.attention_s, 0.0);
  times.norm_s = std::exchange(impl_->activations.norm_s, 0.0);
  times.gemm_flop = std::exchange(impl_->panels.gemm_flop, 0.0);
  return times;
}

void Engine::time_products() {
  impl_->panels.time_products = true;
}

std::string Engine::arithmetic_fingerprint() const {
  return gemm_fingerprint() + "; kernels " + simd_kernels().name + "; compute " +
         (impl_->compute == Compute::bf16 ? "bf16" : "fp32") + "; tiles " + std::to_string(row_tile) + "; panels " +
         std::to_string(panel_rows(1)) + "/" + std::to_string(panel_rows(2048)) + "/" +
         std::to_string(panel_rows(8192)) + "; attention " + std::to_string(attention_rows) + "; libc " +
         gnu_get_libc_version();
}

std::size_t activation_bytes(const ModelConfig& config, int evaluations, int tokens, int terms, int threads) {
  const TensorTable table = tensor_table(config);
  const int head = family_of(config.family).head_matrix(config, table);
  const Tensor& head_matrix = table.tensors[static_cast<std::size_t>(head)];
  std::int64_t panel = 0, columns = 0;
  for (const Tensor& t : table.tensors)
    if (t.matrix) {
      panel = std::max(panel, panel_rows(t.cols) * t.cols);
      columns = std::max(columns, t.cols);
    }
  const std::int64_t e = evaluations;
  const std::int64_t partials = log_prob_partials(e * terms, head_matrix.rows, head_matrix.cols);
  const std::int64_t floats = e * round_up(tokens, row_tile) * config.hidden      // residual stream
                              + e * round_up(terms, row_tile) * head_matrix.cols  // the head's rows
                              + 4 * partials + 6 * e * terms                      // its softmax, in double
                              + e * round_up(tokens, row_tile) * columns          // inputs rounded to bf16, at most
                              + threads * (4 * panel + row_tile * panel_rows(0) + 2 * chunk_elements);
  return static_cast<std::size_t>(floats) * sizeof(float) + stage_bytes(config, evaluations, tokens, terms, threads);
}

Rows ActivationBuffer::shape(int evaluations, int tokens, int features) {
  const std::int64_t evaluation_stride = std::int64_t{round_up(tokens, row_tile)} * features;
  const auto wanted = static_cast<std::size_t>(evaluation_stride * evaluations);
  if (memory_.extent(0) < wanted) memory_ = {};  // the smaller one goes before the larger one comes
  if (memory_.extent(0) < wanted) memory_ = Kokkos::View<float*, Kokkos::HostSpace>(std::string(label_), wanted);
  return {memory_.data(), evaluations, tokens, features, features, evaluation_stride};
}

}  // namespace distzo2
