// SPDX-License-Identifier: BSD-3-Clause
// What a plan says before anything is allocated, against what is allocated then: by malloc and its relatives, and by
// the operating system, on models large enough that a twentieth of them means something.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "app/bench_stepper.hpp"
#include "app/memory_budget.hpp"
#include "app/placed_model.hpp"
#include "app/progress.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

struct Way {
  std::string name;
  std::vector<std::string> sets;
  bool disk = false;
};

std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.name;
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const char* storage : {"fp32", "bf16", "fp16"}) {
    const std::string precision = std::string("precision/storage=") + storage, prefix = std::string(storage) + "_";
    all.push_back({prefix + "resident", {precision}});
    for (const char* groups : {"off", "on"}) {
      const std::string key = std::string("memory/groups=") + groups, end = std::string("_groups_") + groups;
      all.push_back({prefix + "staged" + end, {precision, key, "memory/staging=always"}});
      all.push_back({prefix + "disk" + end, {precision, key}, true});
    }
  }
  all.push_back({"bf16_compute_disk_staged",
                 {"precision/storage=bf16", "precision/compute=bf16", "memory/staging=always"},
                 true});
  return all;
}

constexpr const char* measured_deck = R"(model: {shape: SHAPE, weights: random, seed: 1}
data: {task: random tokens, sequence length: 16, train examples: 8}
zo: {steps: 4, batch: 2, epsilon: 1e-3, learning rate: 1e-4, kind: rademacher}
)";

/// The model of a deck placed as planned, and steps of it. Returns the plan.
MemoryPlan run(const TemporaryFolder& folder, const std::string& shape, std::vector<std::string> sets, bool disk) {
  std::string text = measured_deck;
  text.replace(text.find("SHAPE"), 5, shape);
  const auto deck = folder.write("deck.yaml", text);
  RunConfig config = read_run_config(deck, sets);
  const ModelConfig model = model_config(config.model);
  const LoadedData data = load_data(config, model, Sets::all);
  if (disk) {  // room for half of what would be allocated if all were in memory
    const std::uint64_t all = plan_here(config, model, data).total(MemoryPlace::host) - host_baseline_bytes;
    sets.push_back("memory/host budget=" + std::to_string(host_baseline_bytes + all / 2) + " B");
    sets.push_back("memory/scratch folder=" + (folder / "scratch").string());
    config = read_run_config(deck, sets);
  }
  const MemoryPlan plan = plan_here(config, model, data);
  EXPECT_EQ(plan.disk_bytes > 0, disk);
  TemporaryModel placed(config, model, plan, config.precision.compute);
  Stepper stepper(config, data, placed.engine());
  for (int i = 0; i < 3; ++i) stepper.step();
  return plan;
}

std::string percent(std::uint64_t measured, std::uint64_t planned) {
  return std::to_string(100.0 * static_cast<double>(measured) / static_cast<double>(planned));
}

class PlanMeasured : public ::testing::TestWithParam<Way> {};

TEST_P(PlanMeasured, bytes_are_within_a_twentieth) {
  if (!allocations_are_counted) return;  // sanitizers have a malloc of their own
  mallopt(M_MMAP_THRESHOLD, 1 << 20);    // what is freed goes back to the system, so that its peak is of this run
  const TemporaryFolder folder;
  const Way& way = GetParam();
  run(folder, "opt-tiny", way.sets, false);  // code, libraries and what they keep: the baseline
  malloc_trim(0);
  const std::uint64_t live = allocation_counts().live_bytes;
  reset_allocation_peak();
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const std::uint64_t resident = resident_bytes();

  const MemoryPlan plan = run(folder, "opt-125m", way.sets, way.disk);

  const std::uint64_t planned = plan.total(MemoryPlace::host) - plan.terms.front().bytes;  // less the program
  ASSERT_EQ(plan.terms.front().name, "program and data");
  const std::uint64_t allocated = allocation_counts().peak_bytes - live, system = peak_resident_bytes() - resident;
  EXPECT_GE(planned, std::uint64_t{60} << 20);
  EXPECT_NEAR(static_cast<double>(allocated), static_cast<double>(planned), 0.05 * static_cast<double>(planned));
  EXPECT_NEAR(static_cast<double>(system), static_cast<double>(planned), 0.05 * static_cast<double>(planned));
  EXPECT_LE(resident, host_baseline_bytes);
  RecordProperty("allocated_percent_of_planned", percent(allocated, planned));
  RecordProperty("system_percent_of_planned", percent(system, planned));
  if (::testing::Test::HasFailure())
    for (const MemoryTerm& t : plan.terms)
      std::printf("  %-40s %12llu\n", t.name.c_str(), static_cast<unsigned long long>(t.bytes));
}

INSTANTIATE_TEST_SUITE_P(Tiers, PlanMeasured, ::testing::ValuesIn(ways()),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace distzo2
