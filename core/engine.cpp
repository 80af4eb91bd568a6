// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine.hpp"

#include "core/host_backend.hpp"
#include "core/models/family.hpp"
#include "core/models/stage.hpp"

#include <utility>
#include <vector>

namespace distzo2 {

TensorTable tensor_table(const ModelConfig& config) {
  return family_of(config.family).table(config);
}

struct Engine::Impl {
  Impl(ModelConfig model, UpdateRule rule, Compute c, const Placement& placement, BlockStorage* disk,
       const UnitPipeline::Options& options, const EngineDevice& device, NodeMemory* node)
      : config(std::move(model)),
        family(family_of(config.family)),
        arena(make_kokkos_arena()),
        store(family.table(config), rule, *arena, placement, disk, options, device.memory, node),
        head_matrix(family.head_matrix(config, store.table())),
        backend(make_backend(device, {config, store.table(), rule.storage, c, device.largest, device.reproducible})) {
    if (PendingUpdates* const updates = backend->updates(); updates != nullptr && device.memory != nullptr)
      store.apply_with(*updates);
    if (store.streams_tensor(token_table))
      store.reserve_rows(token_table, static_cast<std::size_t>(device.largest.tokens));
  }

  static std::unique_ptr<Backend> make_backend(const EngineDevice& device, const BackendSetup& setup) {
    if (device.make_backend) return device.make_backend(setup);
    if (device.memory != nullptr) return device.memory->make_backend(setup);
    return std::make_unique<HostBackend>(setup.config, setup.compute);
  }

  ModelConfig config;
  const Family& family;
  std::unique_ptr<HostArena> arena;
  ParameterStore store;
  int head_matrix;  // tensor; in block 0 where the head is tied
  std::unique_ptr<Backend> backend;
  // Of the pass: kept, so that a step allocates nothing.
  std::vector<Weight> weights;
  std::vector<int> head_tokens, row_of_token;
  std::vector<std::int32_t> position_rows;
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
    // 1. The residual stream of all evaluations.
    backend->begin_pass(batch, p);
    StageContext ctx{config,        batch, *backend, backend->rows(Activation::hidden, batch.tokens(), config.hidden),
                     position_rows, store};
    // 2. Embedding: where it is streamed, the rows that the batch looks up.
    store.begin_pass(head_matrix);
    weights_of(0);
    if (store.streams_tensor(token_table)) weights[token_table] = store.gather_rows(token_table, batch.ids);
    store.update_streamed_table();
    family.embedding(ctx, weights);
    // 3. Decoder blocks.
    for (int layer = 0; layer < config.layers; ++layer) {
      family.block(ctx, weights_of(layer + 1), layer);
      store.close_block(layer + 1);
    }
    // 4. The rows that the loss terms read, normed.
    const Rows rows = backend->rows(Activation::head, static_cast<int>(head_tokens.size()),
                                    store.table().tensors[static_cast<std::size_t>(head_matrix)].cols);
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
};

Engine::Engine(ModelConfig config, UpdateRule rule, Compute compute)
    : Engine(config, rule, compute, resident_placement(tensor_table(config), rule.storage), nullptr) {}
Engine::Engine(ModelConfig config, UpdateRule rule, Compute compute, const Placement& placement, BlockStorage* disk,
               const UnitPipeline::Options& options, const EngineDevice& device, NodeMemory* node)
    : impl_(std::make_unique<Impl>(std::move(config), rule, compute, placement, disk, options, device, node)) {}
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
  m.backend->begin_head(rows, m.head_terms);
  m.pass_over_head([&](const Weight& w, std::int64_t first_row) { m.backend->add_head_rows(w, first_row); });
  m.backend->finish_head(log_prob.data());
}

void Engine::logits(const PackedBatch& batch, const Perturbation& perturbation, std::span<float> logits) {
  Impl& m = *impl_;
  m.head_tokens.clear();
  for (const LossTerm& term : batch.terms) m.head_tokens.push_back(term.token);
  const Rows rows = m.run_stages(batch, perturbation);
  const std::int64_t vocab = m.store.table().tensors[static_cast<std::size_t>(m.head_matrix)].rows;
  const Rows out{logits.data(), rows.evaluations, rows.tokens, static_cast<int>(vocab), vocab, rows.tokens * vocab};
  m.pass_over_head([&](const Weight& w, std::int64_t first_row) {
    m.backend->logits(out.columns(static_cast<int>(first_row), static_cast<int>(w.rows)), w, rows);
  });
}

std::size_t Engine::activation_bytes() const {
  return impl_->backend->bytes();
}

PassTimes Engine::take_times() {
  return impl_->backend->take_times();
}

void Engine::time_products() {
  impl_->backend->time_products();
}

std::string Engine::arithmetic_fingerprint() const {
  return impl_->backend->arithmetic_fingerprint();
}

}  // namespace distzo2
