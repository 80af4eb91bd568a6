// SPDX-License-Identifier: BSD-3-Clause
#include "app/lane_log.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/loading.hpp"
#include "app/step_losses.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

Utilisation step_of(double wall_s, double read_s, double compute_s, std::uint64_t bytes) {
  Utilisation u;
  u.wall_s = wall_s;
  u.lanes[static_cast<int>(LaneKind::read)] = {read_s, bytes};
  u.lanes[static_cast<int>(LaneKind::compute)] = {compute_s, 0};
  return u;
}

TEST(StepUses, are_those_of_the_last_half_of_the_steps) {
  StepUses uses;
  EXPECT_FALSE(uses.last_half());
  for (int i = 1; i <= 5; ++i) uses.add(step_of(i, 0.25 * i, i, 10));
  const Utilisation u = uses.last_half().value();  // of steps 3, 4, 5
  EXPECT_EQ(u.wall_s, 12);
  EXPECT_EQ(u.lanes[static_cast<int>(LaneKind::read)].busy_s, 3);
  EXPECT_EQ(u.lanes[static_cast<int>(LaneKind::read)].bytes, 30U);
  EXPECT_EQ(u.lanes[static_cast<int>(LaneKind::compute)].busy_s, 12);
  EXPECT_EQ(u.overlap, 1);  // (15 - 12) / (15 - 12)
  uses.add(step_of(9, 0.25, 6, 10));
  EXPECT_EQ(uses.last_half()->wall_s, 18);  // of steps 4, 5, 6
  EXPECT_EQ(uses.last_half()->overlap, 0);  // 15 and 2.5 s of work in 18 s
}

TEST(StepUses, of_many_steps_are_at_most_a_512th_more) {
  StepUses uses;
  std::uint64_t steps = 0;
  for (const std::uint64_t n : {1023U, 1024U, 1025U, 5000U, 100001U}) {
    for (; steps < n; ++steps) uses.add(step_of(1, 0, 1, 0));
    const auto half = static_cast<double>(n - n / 2);
    EXPECT_GE(uses.last_half()->wall_s, half) << n;
    EXPECT_LE(uses.last_half()->wall_s, half + static_cast<double>(n) / 512 + 1) << n;
  }
}

TEST(LaneLog, gives_the_rate_of_each_lane_and_of_the_disk) {
  Utilisation u = step_of(4, 2, 3, 1000);
  u.lanes[static_cast<int>(LaneKind::write)] = {0.5, 500};
  const nlohmann::ordered_json lanes = lanes_object(u);
  EXPECT_EQ(lanes.at("read").at("bytes_per_s"), 500);
  EXPECT_EQ(lanes.at("write").at("bytes_per_s"), 1000);
  EXPECT_FALSE(lanes.at("compute").contains("bytes_per_s"));
  EXPECT_EQ(disk_rate(u), 750);  // 1,500 bytes in the two seconds of the longer lane
}

/// Uploads in the timeline, from the file alone: of how many units, and how many in all.
std::pair<std::size_t, std::size_t> uploads_in(const std::filesystem::path& file) {
  std::set<int> units;
  std::size_t uploads = 0;
  for (const json& event : json::parse(text_of_file(file))) {
    if (event.at("ph") != "X" || event.at("tid") != static_cast<int>(LaneKind::upload) + 1) continue;
    units.insert(event.at("args").at("unit").get<int>());
    ++uploads;
  }
  return {units.size(), uploads};
}

TEST(LaneLog, leaves_evaluations_out_of_the_steps_and_shows_each_of_their_passes) {
  const TinyProject project;
  std::string rows = "sentence\tlabel\n";
  for (int i = 0; i < 12000; ++i) rows += "row number " + std::to_string(10000 + i) + "\t1\n";
  const std::string dev = "data/dev=" + project.write("many.tsv", rows).string();
  const std::vector<std::string> sets{"memory/staging=always", "memory/groups=on", "data/test=", "zo/steps=3"};
  const auto upload_bytes = [&](const std::vector<std::string>& more) {
    return project.trained(with(sets, more)).at("lanes").at("upload").at("bytes").get<double>();
  };
  const double plain = upload_bytes({"data/dev=", "output/folder=plain"});
  const std::vector<std::string> watched{dev, "output/evaluate every=2", "output/trace file=trace.json"};
  EXPECT_NEAR(upload_bytes(watched), plain, 0.3 * plain);  // of steps 2 and 3, with an evaluation in the latter

  // Each pass of the steps and of the two evaluations among them uploads each unit once; units fetched ahead for one
  // that does not come are few.
  const RunConfig config = read_run_config(project.path("deck.yaml"), with(sets, {dev}));
  const std::uint64_t passes =
      evaluation_passes(load_data(config, model_config(config.model), Sets::all).dev->examples);
  const auto [units, uploads] = uploads_in(project.path("trace.json"));
  EXPECT_GT(passes * units, most_spans);  // more than a lane keeps
  EXPECT_GE(uploads, (3 + 2 * passes) * units);
  EXPECT_LE(uploads, (3 + 2 * passes) * units + 10);
}

}  // namespace
}  // namespace distzo2
