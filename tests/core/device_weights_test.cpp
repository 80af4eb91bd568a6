// SPDX-License-Identifier: BSD-3-Clause
// The device's update and perturbation have the host's bits.
#include "core/device/weights.hpp"

#include "core/linear.hpp"
#include "core/panels.hpp"
#include "core/update.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace distzo2 {
namespace {

/// Three records with two directions each, the last of them after the last rounding point where R is 2.
struct Pending {
  std::vector<StepRecord> steps;
  std::vector<RecordEntry> entries;
  std::vector<float> c;

  explicit Pending(std::uint32_t round_every) {
    for (const std::uint32_t t : {8U, 9U, 10U}) {
      StepRecord s;
      s.t = t;
      s.lr = 1e-3;
      s.wd = t == 9 ? 0.0F : 0.3F;
      s.c = {t == 10 ? 0.0F : 3e-3F, -1e-2F};
      const auto begin = static_cast<std::uint32_t>(c.size());
      c.insert(c.end(), s.c.begin(), s.c.end());
      entries.push_back({t, decay_factor(s), begin, begin + 2, (t + 1) % round_every == 0});
      steps.push_back(s);
    }
  }
  Records records(const UpdateRule& rule, std::uint32_t absorb, bool matrix) const {
    return {entries.data(),
            c.data(),
            absorb,
            3,
            rule.seed,
            matrix ? rule.storage : Storage::fp32,
            rule.kind == DirectionKind::gaussian,
            matrix,
            rule.rounding == Rounding::stochastic};
  }
};

std::uint16_t to_words(Storage storage, float x) {
  return storage == Storage::bf16 ? Bfloat16::nearest(x) : Float16::nearest(x);
}
float from_words(Storage storage, std::uint16_t x) {
  return storage == Storage::bf16 ? Bfloat16::to_float(x) : Float16::to_float(x);
}

/// A clean evaluation, and both signs of directions 1 and 2, in no good order.
const std::vector<Evaluation> evaluations{{2, 1e-2F}, {1, -1e-2F}, {0, 0.0F}, {2, -1e-2F}, {1, 1e-2F}};
const std::vector<DirectionEntry> direction_entries{{2, 0, 2}, {1, 2, 4}, {0, 4, 5}};
const std::vector<EvaluationEntry> members{{0, 1e-2F}, {3, -1e-2F}, {1, -1e-2F}, {4, 1e-2F}, {2, 0.0F}};

TEST(DeviceWeights, updates_and_perturbs_with_the_bits_of_the_host) {
  constexpr std::size_t n = 1031;
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.0F, 0.05F);
  const HostExec exec;
  for (const auto kind : {DirectionKind::gaussian, DirectionKind::rademacher})
    for (const auto storage : {Storage::fp32, Storage::bf16, Storage::fp16})
      for (const auto rounding : {Rounding::stochastic, Rounding::nearest})
        for (const std::uint64_t first : {0ULL, 3ULL, (1ULL << 34U) - 514})
          for (const bool matrix : {true, false}) {
            const std::uint32_t every = 2, absorb = storage == Storage::fp32 ? 3 : 2;
            const UpdateRule rule{5, kind, storage, rounding, every};
            const Storage stored = matrix ? storage : Storage::fp32;
            const Pending pending(every);
            // What the host makes of it.
            std::vector<float> theta(n), scratch(n);
            std::vector<std::byte> memory(n * bytes_of(stored));
            for (std::size_t i = 0; i < n; ++i) {
              theta[i] = normal(random);
              if (stored == Storage::fp32) {
                std::memcpy(&memory[4 * i], &theta[i], 4);
              } else {
                const std::uint16_t word = to_words(stored, theta[i]);
                theta[i] = from_words(stored, word);
                std::memcpy(&memory[2 * i], &word, 2);
              }
            }
            apply_records(theta.data(), first, n, matrix, rule, std::span(pending.steps).first(absorb), scratch.data());
            const std::vector<float> absorbed = theta;
            apply_records(theta.data(), first, n, matrix, rule, std::span(pending.steps).subspan(absorb),
                          scratch.data());
            for (const Compute compute : {Compute::fp32, Compute::bf16, Compute::fp16}) {
              std::vector<std::byte> here = memory, out(evaluations.size() * n * bytes_of(compute));
              make_weights<HostSpace>(
                  exec, out.data(), {here.data(), stored, first, n}, pending.records(rule, absorb, matrix),
                  {direction_entries.data(), members.data(), 3, rule.seed, 11, kind == DirectionKind::gaussian},
                  compute, n);
              for (std::size_t i = 0; i < n; ++i) {
                float value = 0.0F;
                std::uint16_t word = 0;
                std::memcpy(&value, &here[stored == Storage::fp32 ? 4 * i : 0], 4);
                std::memcpy(&word, &here[stored == Storage::fp32 ? 0 : 2 * i], 2);
                const float kept = stored == Storage::fp32 ? value : from_words(stored, word);
                ASSERT_EQ(std::bit_cast<std::uint32_t>(kept), std::bit_cast<std::uint32_t>(absorbed[i]));
              }
              std::vector<float> z(n);
              for (std::size_t e = 0; e < evaluations.size(); ++e) {
                const Perturbation p{rule.seed, 11, kind, evaluations};
                if (evaluations[e].direction != 0) fill_z(z.data(), p, evaluations[e].direction, first, n);
                for (std::size_t i = 0; i < n; ++i) {
                  const float w =
                      evaluations[e].direction == 0 ? theta[i] : std::fma(evaluations[e].scale, z[i], theta[i]);
                  const std::size_t at = (e * n + i) * bytes_of(compute);
                  float made = 0.0F;
                  std::uint16_t word = 0;
                  if (compute == Compute::fp32)
                    std::memcpy(&made, &out[at], 4);
                  else
                    std::memcpy(&word, &out[at], 2);
                  if (compute != Compute::fp32) made = from_words(as_storage(compute), word);
                  ASSERT_EQ(made, round_to(w, compute)) << "evaluation " << e << ", element " << i;
                }
              }
            }
          }
}

TEST(DeviceWeights, looks_rows_up_with_the_bits_of_the_host) {
  constexpr int rows = 11, cols = 37, tokens = 5;
  const auto arena = make_kokkos_arena();
  ParameterStore store(make_tensor_table({{{"v", 1, 6, true}, {"w", rows, cols, true}}}),
                       UpdateRule{7, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 2}, *arena);
  std::vector<float> values(rows * cols);
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for (float& v : values) v = normal(random);
  store.import_values(1, 0, values);
  const Pending pending(2);
  for (std::uint32_t t = 0; t < 3; ++t) {
    StepRecord record = pending.steps[t];
    record.t = t;
    store.append(record);
  }
  std::vector<RecordEntry> entries = pending.entries;
  for (std::uint32_t t = 0; t < 3; ++t) {
    entries[t].t = t;
    entries[t].rounds = t % 2 == 1;
  }
  const Weight w = store.weight(1);
  const std::vector<std::int32_t> ids{10, 0, 3, 10, 7};
  const Perturbation p{7, 3, DirectionKind::gaussian, evaluations};
  const auto count = static_cast<int>(evaluations.size());
  std::vector<float> expected(evaluations.size() * tokens * cols, 0.5F), made = expected;
  const auto over = [&](std::vector<float>& memory) {
    return Rows{memory.data(), count, tokens, cols, cols, tokens * cols};
  };
  const HostExec exec;
  PanelScratch scratch(exec);
  lookup_rows(exec, over(expected), ids, w, p, true, scratch);
  Records records = pending.records(store.rule(), 0, true);
  records.entries = entries.data();
  look_up_rows<HostSpace>(exec, over(made), ids.data(), {w.data, w.storage, w.first, rows * cols}, cols, false, records,
                          {direction_entries.data(), members.data(), 3, 7, 3, true}, true);
  EXPECT_EQ(made, expected);
}

}  // namespace
}  // namespace distzo2
