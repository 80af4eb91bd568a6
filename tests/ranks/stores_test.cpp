// SPDX-License-Identifier: BSD-3-Clause
// Parameters on disk on several ranks: the bits of one rank that has them in memory, and stores that outlive a part of
// a run and not the whole.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/trajectory_format.hpp"
#include "tests/ranks/deep_project.hpp"
#include "tests/support/on_ranks.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using Sets = std::vector<std::string>;

class RanksStores : public ::testing::Test {
protected:
  RanksStores() {
    project_.write("disk.yaml",
                   "model: {shape: llama-tiny, weights: random, seed: 1}\n"
                   "data: {task: random tokens, sequence length: 16, train examples: 20}\n"
                   "zo: {steps: 12, batch: 4, epsilon: 1e-3, learning rate: 1e-2}\n");
    // Room for less of the parameters than half: some are on disk even where two ranks keep one copy.
    little_memory_ = {host_budget(host_bytes_with(project_, "disk.yaml", {"memory/groups=on"}, 45)),
                      "memory/groups=on"};
    on_disk_ = with(little_memory_, {"parallel/slices=off"});
  }
  std::string run(const std::string& folder, const Sets& sets, int ranks, int exit_code = 0) {
    return go_on(project_, "disk.yaml", folder, sets, ranks, exit_code);
  }
  bool has_store(const std::string& name) const { return std::filesystem::exists(project_.path(name)); }

  TinyProject project_;
  Sets little_memory_, on_disk_;  // the latter: with a store a rank
  const Sets stopped_{"checkpoint/time limit=0.001 s"};
};

TEST_F(RanksStores, change_no_bit_nor_does_stopping_the_run) {
  run("resident", {}, 0);
  run("ranks", with(on_disk_, stopped_), 2, 75);
  EXPECT_TRUE(has_store("ranks/store-rank1"));
  run("ranks", on_disk_, 2);
  const nlohmann::json ranks = project_.summary("ranks");
  expect_same_run(ranks, project_.summary("resident"));
  EXPECT_GT(ranks.at("bytes_read"), 0U);
  EXPECT_FALSE(has_store("ranks/store-rank1"));
}

TEST_F(RanksStores, of_a_node_are_one_that_is_read_once) {
  const Sets budget = with(little_memory_, {"zo/steps=30", "memory/write back every=2"});
  run("resident", {"zo/steps=30"}, 0);
  run("alone", budget, 0);
  run("apart", with(budget, {"parallel/slices=off"}), 2);
  run("shared", with(budget, stopped_), 2, 75);
  EXPECT_TRUE(has_store("shared/store"));
  EXPECT_FALSE(has_store("shared/store-rank1"));
  run("shared", budget, 2);
  for (const char* folder : {"alone", "apart", "shared"})
    expect_same_run(project_.summary(folder), project_.summary("resident"));
  const auto bytes = [&](const char* folder, const char* key) {
    return project_.summary(folder).at(key).get<double>();
  };
  EXPECT_GT(bytes("shared", "bytes_read"), 0.0);
  // Two ranks read and write what one does, in a digest, too, and of a seventh more on disk; a digest by each would add
  // 0.08.
  EXPECT_LT(bytes("shared", "bytes_read"), 1.25 * bytes("alone", "bytes_read"));
  EXPECT_GT(bytes("apart", "bytes_read"), 1.9 * bytes("alone", "bytes_read"));
  EXPECT_LT(bytes("shared", "bytes_written"), 1.2 * bytes("alone", "bytes_written"));
  EXPECT_FALSE(has_store("shared/store"));
}

TEST_F(RanksStores, of_all_ranks_are_gone_on_with) {
  run("resident", {"zo/steps=13"}, 0);
  const Sets sets = with(on_disk_, {"memory/write back every=1", "memory/keep store=true"});
  run("ranks", sets, 3);
  const auto first = project_.summary("ranks").at("bytes_written").get<std::uint64_t>();
  // 12 steps: the import of three copies, and the 11 records that a step after them applied: 3 x 12 copies.
  const std::uint64_t copy = first / (3 * 12);
  run("ranks", with(sets, {"zo/steps=13"}), 3);
  const nlohmann::json ranks = project_.summary("ranks");
  expect_same_run(ranks, project_.summary("resident"));
  // The replay of the last record, by each; nobody began with the base model.
  EXPECT_EQ(ranks.at("bytes_written").get<std::uint64_t>(), 3 * copy);
}

TEST_F(RanksStores, are_gone_after_an_end_on_fewer_ranks_or_in_more_memory) {
  run("resident", {}, 0);
  run("fewer", with(on_disk_, stopped_), 3, 75);
  EXPECT_TRUE(has_store("fewer/store-rank2"));
  run("fewer", on_disk_, 2);
  run("memory", with(on_disk_, stopped_), 3, 75);
  run("memory", {}, 0);
  run("scratch", with(on_disk_, with(stopped_, {"memory/scratch folder=elsewhere"})), 3, 75);
  EXPECT_FALSE(std::filesystem::is_empty(project_.path("elsewhere")));
  run("scratch", with(on_disk_, {"memory/scratch folder=elsewhere"}), 0);
  EXPECT_TRUE(std::filesystem::is_empty(project_.path("elsewhere")));
  for (const char* folder : {"fewer", "memory", "scratch"}) {
    expect_same_run(project_.summary(folder), project_.summary("resident"));
    for (const char* store : {"/store", "/store-rank1", "/store-rank2"})
      EXPECT_FALSE(has_store(folder + std::string(store)));
  }
}

TEST_F(RanksStores, are_moved_or_gone_where_the_run_goes_on_elsewhere) {
  run("resident", {}, 0);
  const auto scratch = [](const std::string& folder) { return "memory/scratch folder=" + folder; };
  const auto expect_said = [](const std::string& out, const std::string& part) {
    EXPECT_NE(out.find(part), std::string::npos) << "\"" << part << "\" is not in:\n" << out;
  };
  const std::string moved = "is moved from " + project_.path("a/").string();
  const std::string unused = " is not used any more and goes at the run's end\n";
  // 1. In a folder that was moved, on fewer ranks.
  run("first", with(on_disk_, with(stopped_, {scratch("a")})), 3, 75);
  std::filesystem::rename(project_.path("first"), project_.path("moved"));
  std::string out = run("moved", with(on_disk_, {scratch("a")}), 2);
  for (const std::string& part : {moved + "first-", std::string("-rank1 to "), "-rank2" + unused})
    expect_said(out, part);
  // 2. In another scratch folder, with one store a node.
  run("other", with(on_disk_, with(stopped_, {scratch("a")})), 3, 75);
  out = run("other", with(little_memory_, {scratch("b")}), 2);
  for (const std::string& part : {moved + "other-", "-rank1" + unused, "-rank2" + unused}) expect_said(out, part);
  for (const char* folder : {"moved", "other"}) {
    expect_same_run(project_.summary(folder), project_.summary("resident"));
    EXPECT_FALSE(has_store(folder + std::string("/store.path")));
  }
  for (const char* folder : {"a", "b"}) EXPECT_TRUE(std::filesystem::is_empty(project_.path(folder)));
}

TEST_F(RanksStores, that_are_ahead_of_the_trajectory_lose_what_it_does_not_lead_to) {
  // What a crash can leave: a trajectory of two steps, and in the store of rank 1 the update of a third. A part of the
  // run begins with writing the updates of the parts before.
  run("resident", {}, 0);
  const Sets sets = with(on_disk_, {"memory/write back every=1"});
  const auto two_steps = [&] {
    for (int step = 0; step < 2; ++step) run("ranks", with(sets, stopped_), 2, 75);
  };
  two_steps();
  namespace fs = std::filesystem;
  const auto copied = fs::copy_options::recursive | fs::copy_options::overwrite_existing;
  fs::copy(project_.path("ranks"), project_.path("before"), copied);
  two_steps();
  for (const char* name : {"trajectory.zoj", "metrics.jsonl", "store"})
    fs::copy(project_.path("before") / name, project_.path("ranks") / name, copied);
  run("ranks", sets, 2);
  expect_same_run(project_.summary("ranks"), project_.summary("resident"));
}

TEST_F(RanksStores, keep_a_copy_of_the_trajectory_each_where_their_folder_is_persistent) {
  namespace fs = std::filesystem;
  run("resident", {}, 0);
  const Sets sets = with(on_disk_, {"memory/scratch persistent=true", "parallel/consistency check every=1"});
  for (int step = 0; step < 3; ++step) run("ranks", with(sets, stopped_), 2, 75);
  const fs::path own = project_.path("ranks/trajectory.zoj"), first = project_.path("ranks/store/trajectory.zoj"),
                 second = project_.path("ranks/store-rank1/trajectory.zoj");
  const std::string three = text_of_file(own);
  for (const fs::path& copy : {first, second}) EXPECT_EQ(text_of_file(copy), three);
  // Rank 1 alone has all three steps; at first with another record.
  fs::resize_file(own, three.size() - 64);
  fs::remove(first);
  std::string other = three;
  Trajectory t = decode_trajectory(other, "t");
  t.steps.at(1).g.at(0) += 1;
  other = encode_trajectory(t.header, t.steps, t.digests);
  project_.write("ranks/store-rank1/trajectory.zoj", other);
  const ProgramResult refused =
      project_.run(train_words("disk.yaml", with(sets, {"output/folder=ranks"}), {"--resume", "auto"}), on_ranks(2));
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find(own.string() + " and " + second.string() + " are not of one run: record 2 differs"),
            std::string::npos)
      << refused.err;
  project_.write("ranks/store-rank1/trajectory.zoj", three);
  const std::string out = run("ranks", with(sets, {"memory/keep store=true"}), 2);
  EXPECT_NE(out.find(second.string() + " has 3 steps, and the run's own trajectory 2"), std::string::npos) << out;
  for (const fs::path& copy : {first, second}) EXPECT_EQ(text_of_file(copy), text_of_file(own));
  expect_same_run(project_.summary("ranks"), project_.summary("resident"));
}

}  // namespace
}  // namespace distzo2
