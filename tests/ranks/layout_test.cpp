// SPDX-License-Identifier: BSD-3-Clause
// One deck gives the same bits on every layout of ranks.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "io/trajectory_file.hpp"
#include "tests/support/on_ranks.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

struct RankLayout {
  int pertp, ddp;
  const char* order = "pertp inner";
};

/// The run of this deck on one rank, without MPI, and on each of these layouts.
void expect_same_bits(std::vector<std::string> sets, const std::vector<RankLayout>& layouts) {
  sets.insert(sets.end(), {"zo/steps=20", "zo/batch=6", "output/evaluate every=7", "output/write models=never"});
  const TinyProject project;
  std::string rows = "sentence\tlabel\n";  // enough for an evaluation of several passes, which ranks divide
  for (int i = 0; i < 150; ++i)
    rows += "dev " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 13), 'x') + "\t" +
            std::to_string(i % 2) + "\n";
  project.write("dev.tsv", rows);
  const json alone = project.trained(sets);
  EXPECT_EQ(alone.at("exchange"), nullptr);
  int number = 0;
  for (const RankLayout& l : layouts) {
    const std::string name = std::to_string(l.pertp) + " x " + std::to_string(l.ddp) + ", " + l.order;
    SCOPED_TRACE(name);
    std::vector<std::string> of_ranks = sets;
    of_ranks.insert(of_ranks.end(),
                    {"parallel/pertp=" + std::to_string(l.pertp), "output/folder=run" + std::to_string(number++),
                     std::string("parallel/order=") + l.order});
    const json ranks = project.trained(of_ranks, {}, on_ranks(l.pertp * l.ddp));
    expect_same_run(ranks, alone);
    EXPECT_EQ(ranks.at("best"), alone.at("best"));
    const json& layout = ranks.at("layout");
    EXPECT_EQ(layout.at("pertp"), l.pertp);
    EXPECT_EQ(layout.at("ddp"), l.ddp);
    EXPECT_EQ(layout.at("order"), l.order);
    EXPECT_EQ(layout.at("ranks").size(), static_cast<std::size_t>(l.pertp * l.ddp));
  }
}

const std::vector<RankLayout> of_two_evaluations{{2, 1}, {1, 2}, {1, 3}, {2, 2}, {2, 2, "ddp inner"}, {2, 3}};
const std::vector<RankLayout> of_three_evaluations{{3, 1}, {1, 2}, {1, 3}, {1, 4}, {3, 2}, {3, 2, "ddp inner"}};
const std::vector<std::string> bf16{"precision/storage=bf16", "precision/compute=bf16"};

TEST(RanksLayout, changes_no_bit_of_central_differences) {
  expect_same_bits({}, of_two_evaluations);
}

TEST(RanksLayout, changes_no_bit_of_central_differences_in_bf16) {
  expect_same_bits(bf16, of_two_evaluations);
}

TEST(RanksLayout, changes_no_bit_of_two_directions) {
  expect_same_bits({"zo/directions=2"}, {{4, 1}, {2, 2}, {2, 2, "ddp inner"}, {1, 6}});
  expect_same_bits(with(bf16, {"zo/directions=2"}), {{4, 1}, {2, 3, "ddp inner"}});
}

TEST(RanksLayout, changes_no_bit_of_forward_differences) {
  expect_same_bits({"zo/difference=forward"}, {{2, 1}, {2, 3}});
  expect_same_bits({"zo/difference=forward", "zo/directions=2"}, of_three_evaluations);
}

TEST(RanksLayout, changes_no_bit_of_forward_differences_in_bf16) {
  expect_same_bits(with(bf16, {"zo/difference=forward", "zo/directions=2"}), of_three_evaluations);
  expect_same_bits(with(bf16, {"zo/difference=forward"}), {{2, 2}});
}

TEST(RanksLayout, changes_no_bit_of_copies_that_are_each_ranks_own) {
  const std::vector<std::string> own_copies{"parallel/slices=off"};
  expect_same_bits(own_copies, {{2, 1}, {2, 2, "ddp inner"}, {1, 6}});
  expect_same_bits(with(bf16, own_copies), {{1, 3}, {2, 2}});
  expect_same_bits(with(bf16, {"parallel/slices=off", "precision/round every=3"}), {{2, 1}});
}

TEST(RanksLayout, that_does_not_fit_is_refused_once_with_the_arithmetic) {
  const TinyProject project;
  const auto refused = [&](int ranks, const std::vector<std::string>& sets, const std::string& what) {
    const ProgramResult result = project.train(sets, {}, on_ranks(ranks));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    const std::size_t at = result.err.find(what);
    EXPECT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find(what, at + 1), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(project.path("run")));
  };
  refused(3, {"parallel/pertp=2"}, "pertp 2 x ddp 1 = 2 ranks, but 3 were started");
  refused(3, {"zo/batch=2"}, "ddp 3 exceeds the batch of 2 sequences: a rank would have none");
  const ProgramResult alone = project.train({"parallel/ddp=2"});
  expect_one_line(alone, 2, {"pertp 1 x ddp 2 = 2 ranks, but 1 was started"});
}

TEST(RanksLayout, of_the_first_part_of_a_run_may_be_another_than_that_of_the_second) {
  const std::vector<std::string> sets{"zo/steps=16", "zo/batch=6", "output/evaluate every=4",
                                      "parallel/consistency check every=3"};
  const TinyProject whole;
  const json expected = whole.trained(sets);
  const TinyProject project;
  const std::filesystem::path file = project.path("run/trajectory.zoj");
  for (const auto& [ranks, pertp, steps] : {std::tuple{4, 2, 5U}, {1, 1, 8U}, {3, 1, 13U}}) {
    std::vector<std::string> part = sets;
    part.emplace_back("parallel/pertp=" + std::to_string(pertp));
    ProgramOptions options = ranks == 1 ? ProgramOptions{} : on_ranks(ranks);
    EXPECT_EQ(project.train(part, resume, options).exit_code, 0);
    // As if it had been killed: what a run loses is its last records.
    std::filesystem::remove(project.path("run/summary.json"));
    const Trajectory t = read_trajectory(file);
    std::size_t records = 0;  // steps, and digests up to there
    for (const DigestRecord& d : t.digests) records += d.t <= steps ? 1 : 0;
    const std::size_t size = (t.whole_bytes - 64 * (t.steps.size() + t.digests.size())) + 64 * (steps + records);
    std::filesystem::resize_file(file, size);
  }
  const json resumed = project.trained(sets, resume, on_ranks(2));
  expect_same_run(resumed, expected);
  EXPECT_EQ(resumed.at("best"), expected.at("best"));
  const Trajectory t = read_trajectory(file);
  ASSERT_EQ(t.digests.size(), 6U);  // of steps 3, 6, 9, 12, 15 and the last
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(t.digests[i].t, 3 * (i + 1));
  expect_each_step_once(project.metrics(), 16);
}

TEST(RanksLayout, is_reported_with_what_the_exchange_costs) {
  const TinyProject project;
  const ProgramResult result = project.train({"zo/batch=6"}, {}, on_ranks(4));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* rank : {"rank 0 ", "rank 1 ", "rank 2 ", "rank 3 "}) {
    const std::size_t at = result.out.find(rank);
    ASSERT_NE(at, std::string::npos) << result.out;
    EXPECT_EQ(result.out.find(rank, at + 1), std::string::npos) << result.out;  // rank 0 alone speaks
  }
  const json summary = project.summary();
  const json& exchange = summary.at("exchange");
  EXPECT_EQ(exchange.at("bytes_per_step"), 8 * (6 * 3 + 4));  // B (E + 1) doubles and a word a rank
  EXPECT_EQ(exchange.at("waiting_seconds_per_step").size(), 4U);
  EXPECT_GT(exchange.at("share_of_step"), 0.0);
  EXPECT_LT(exchange.at("share_of_step"), 1.0);
  for (const json& rank : summary.at("layout").at("ranks")) {
    EXPECT_EQ(rank.at("threads"), 1);
    EXPECT_GT(rank.at("peak_host_bytes"), 0U);
    EXPECT_NE(rank.at("host"), "");
  }
  for (const json& line : project.metrics()) {
    if (!line.contains("evaluation")) {
      EXPECT_EQ(line.at("exchange").at("bytes"), 176) << line;
    }
  }
}

}  // namespace
}  // namespace distzo2
