// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/engine.hpp"
#include "core/placement.hpp"
#include "core/step.hpp"
#include "core/tensor_table.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace distzo2 {

/// A model whose steps take milliseconds.
inline ModelConfig small_model(FamilyKind family, bool tied) {
  ModelConfig c;
  c.family = family;
  c.vocab = 300;
  c.hidden = c.embed_dim = 64;
  c.layers = 3;
  c.heads = c.kv_heads = 4;
  c.head_dim = 16;
  c.ffn = 200;
  c.max_positions = 64;
  c.tied_head = tied;
  return c;
}

/// Where the units of a model lie, and how they stream.
struct Tiers {
  const char* name;
  Tier tier;
  bool staging, groups;
  int buffers;
  std::uint32_t write_back_every;
  int resident_blocks = 0;    // decoder blocks, the first ones
  bool tables_stream = true;  // embedding and head
};

/// Chunks so small that a block of a small model has several.
constexpr std::size_t small_chunk = std::size_t{1} << 14;

inline Placement place(const TensorTable& table, Storage storage, const Tiers& tiers,
                       std::size_t chunk_bytes = small_chunk) {
  Placement p = make_units(table, make_chunk_table(table, storage, chunk_bytes), tiers.groups);
  p.staging = tiers.staging;
  p.buffers = tiers.buffers;
  p.write_back_every = tiers.write_back_every;
  for (int u = 0; u < std::ssize(p.units); ++u) {
    Unit& unit = p.units[static_cast<std::size_t>(u)];
    const bool resident = is_decoder(table, unit.block) ? unit.block <= tiers.resident_blocks : !tiers.tables_stream;
    if (!resident && may_stream(p, table, p.chunks, u)) unit.tier = tiers.tier;
  }
  size_buffers(p);
  return p;
}

/// Sequences of these lengths, each token but the last predicting the next; `next()` gives the tokens.
template <class Next>
PackedBatch sequences(std::initializer_list<int> lengths, Next&& next) {
  PackedBatch batch;
  for (const int length : lengths) {
    const int begin = batch.tokens();
    for (int i = 0; i < length; ++i) {
      batch.ids.push_back(next());
      batch.positions.push_back(i);
      if (i > 0) batch.terms.push_back({begin + i - 1, batch.ids.back()});
    }
    batch.spans.push_back({begin, batch.tokens(), 0, 0});
  }
  return batch;
}

/// Of a small model's step: two sequences.
inline PackedBatch batch_of_step(std::uint32_t t) {
  return sequences({7, 12}, [random = std::mt19937(t)]() mutable { return static_cast<std::int32_t>(random() % 300); });
}

/// As large as batch_of_step gives, both signs.
inline const BatchShape shape_of_step{2, 19, 17};

/// The same values wherever the chunks lie.
inline void import_random(ParameterStore& store) {
  std::vector<float> values;
  for (const Chunk& chunk : store.chunks().chunks) {
    values.assign(static_cast<std::size_t>(chunk.elements), 0.0F);
    std::mt19937 random(static_cast<std::uint32_t>(chunk.offset + static_cast<std::size_t>(chunk.block)));
    std::normal_distribution<float> normal(chunk.matrix() ? 0.0F : 1.0F, 0.1F);
    for (float& v : values) v = normal(random);
    store.import_chunk(static_cast<int>(&chunk - store.chunks().chunks.data()), values);
  }
}

struct StepsResult {
  std::vector<double> losses;
  std::vector<StepRecord> records;
  std::uint64_t theta = 0;
};

/// Steps of a small model, each with its update; an evaluation after every fourth.
inline StepsResult run_steps(Engine& engine, const UpdateRule& rule, std::uint32_t steps = 10) {
  const StepRule step{Difference::central, 1, 1e-3};
  StepsResult result;
  for (std::uint32_t t = 0; t < steps; ++t) {
    const PackedBatch batch = batch_of_step(t);
    const Perturbation p{rule.seed, t, rule.kind, step_evaluations(step.difference, 1, step.epsilon)};
    std::vector<double> losses(2 * batch.terms.size());
    engine.forward(batch, p, losses);
    result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    if (t % 4 == 3) {
      std::vector<double> clean(batch.terms.size());
      engine.forward(batch, clean_perturbation(), clean);
      result.losses.insert(result.losses.end(), clean.begin(), clean.end());
    }
    for (double& l : losses) l = -l;
    const std::vector<double> counts(batch.terms.size(), 1.0);
    result.records.push_back(make_step_record(step, t, 1e-3, 0.1F, losses, counts, 1e30).record);
    engine.store().append(result.records.back());
  }
  result.theta = engine.store().digest();
  return result;
}

}  // namespace distzo2
