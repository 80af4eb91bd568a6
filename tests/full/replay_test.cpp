// SPDX-License-Identifier: BSD-3-Clause
// Replay of many records against what it cannot do without, z of each and rounding, on all threads, in pairs. Needs
// models/smollm2-135m-instruct (scripts/get_smollm2). Long tests run alone: the figures need a machine that does
// nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/base_storage.hpp"
#include "core/clock.hpp"
#include "core/digest_chunks.hpp"
#include "core/kokkos_scope.hpp"
#include "core/pieces.hpp"
#include "core/replay.hpp"
#include "core/simd/kernels.hpp"
#include "core/step.hpp"
#include "core/update.hpp"
#include "io/hf_config.hpp"
#include "test_paths.hpp"
#include "tests/full/record_result.hpp"

namespace distzo2 {
namespace {

constexpr double wanted_share = 0.8;

std::vector<StepRecord> some_records(std::uint32_t first, std::uint32_t count) {
  std::vector<StepRecord> records;
  for (std::uint32_t t = first; t < first + count; ++t)
    records.push_back({t, 1e-6, 0.0F, {1e-9F * static_cast<float>(t + 1)}, {1.0}, {1.0}, {1.0, 1.0}});
  return records;
}

/// Seconds in which z of every record is made for every chunk of the model, and rounded where the storage asks for
/// that, in the pieces in which a replay goes over them; nothing is read, added or hashed.
double z_and_rounding_s(const TensorTable& table, const UpdateRule& rule, std::uint32_t records) {
  const std::vector<DigestChunk> chunks = digest_chunks(table);
  const SimdKernels& simd = simd_kernels();
  const auto fill = rule.kind == DirectionKind::gaussian ? simd.fill_gaussian : simd.fill_rademacher;
  const auto start = Clock::now();
  for_each_piece(chunks.size(), [&](std::size_t i) {
    const DigestChunk& chunk = chunks[i];
    const bool rounds = rule.storage != Storage::fp32 && table.tensors[static_cast<std::size_t>(chunk.tensor)].matrix;
    float z[chunk_elements];
    std::uint16_t stored[chunk_elements];
    for (std::int64_t first = chunk.first; first < chunk.end; first += chunk_elements) {
      const auto at = static_cast<std::uint64_t>(first);
      const auto n = static_cast<std::size_t>(std::min(chunk_elements, chunk.end - first));
      for (std::uint32_t t = 0; t < records; ++t) {
        fill(z, rule.seed, t, 1, at, n);
        if (rounds) simd.store_stochastic(stored, z, rule.storage, rule.seed, t, at, n);
      }
    }
  });
  return seconds_since(start);
}

struct Form {
  const char* name;
  DirectionKind kind;
  Storage storage;
  std::uint32_t records;  // so many that reading the model counts for little
  int pairs;
};

void PrintTo(const Form& form, std::ostream* out) {
  *out << form.name;
}

class Replay : public ::testing::TestWithParam<Form> {};

/// Times `replay` of so many records, from record `first` on, against what it cannot do without.
template <class Timed>
void measure(const std::string& name, const Form& form, const TensorTable& table, const UpdateRule& rule,
             const Timed& replay) {
  std::vector<double> replay_s, least_s, shares;
  for (int pair = 0; pair < form.pairs; ++pair) {
    const std::vector<StepRecord> records = some_records(static_cast<std::uint32_t>(pair) * form.records, form.records);
    const auto start = Clock::now();
    replay(records);
    replay_s.push_back(seconds_since(start));
    least_s.push_back(z_and_rounding_s(table, rule, form.records));
    shares.push_back(least_s.back() / replay_s.back());
  }
  const double share = median(shares), seconds = median(replay_s);
  record_result(name, {{"records", form.records},
                       {"parameters", table.parameters},
                       {"threads", host_concurrency()},
                       {"kernels", simd_kernels().name},
                       {"replay_s", replay_s},
                       {"z_and_rounding_s", least_s},
                       {"share_of_pairs", shares},
                       {"share", share},
                       {"records_per_second", form.records / seconds},
                       {"seconds_of_20000_records", 20000 / form.records * seconds}});
  EXPECT_GE(share, wanted_share) << "at a load of " << load_average();
}

const std::filesystem::path folder = test_paths::sources / "models/smollm2-135m-instruct";

UpdateRule rule_of(const Form& form) {
  return {1, form.kind, form.storage, Rounding::stochastic, 1};
}

TEST_P(Replay, from_the_base_model_runs_near_the_rate_of_z_and_rounding) {
  const UpdateRule rule = rule_of(GetParam());
  const TensorTable table = tensor_table(read_model_config(folder));
  BaseStorage base(folder_weights(folder, rule, false), table, rule.storage);
  const auto theta0 = replaying_store(base, table, rule);
  replayed_digests(*theta0, {}, std::vector<std::uint32_t>{0});  // the files are in memory now
  const std::vector<std::uint32_t> end{GetParam().records};
  measure(std::string("replay_from_base_") + GetParam().name, GetParam(), table, rule,
          [&](const std::vector<StepRecord>& records) { replayed_digests(*theta0, records, end); });
}

TEST_P(Replay, in_memory_runs_near_the_rate_of_z_and_rounding) {
  const UpdateRule rule = rule_of(GetParam());
  const TensorTable table = tensor_table(read_model_config(folder));
  const auto arena = make_kokkos_arena();
  ParameterStore store(table, rule, *arena);
  import_weights(store, folder_weights(folder, rule, false));
  measure(std::string("replay_in_memory_") + GetParam().name, GetParam(), table, rule,
          [&](const std::vector<StepRecord>& records) {
            for (const StepRecord& r : records) store.append(r);
            store.apply_pending();
          });
}

INSTANTIATE_TEST_SUITE_P(SmolLm2, Replay,
                         ::testing::Values(Form{"gaussian_fp32", DirectionKind::gaussian, Storage::fp32, 100, 3},
                                           Form{"gaussian_bf16", DirectionKind::gaussian, Storage::bf16, 100, 3},
                                           Form{"rademacher_fp32", DirectionKind::rademacher, Storage::fp32, 1000, 3},
                                           Form{"rademacher_bf16", DirectionKind::rademacher, Storage::bf16, 100, 3}),
                         [](const auto& form) { return std::string(form.param.name); });

}  // namespace
}  // namespace distzo2
