// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints of a run: when they are taken, what a resume makes of them, and of what became of them meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "io/trajectory_file.hpp"
#include "tests/support/store_on_disk.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using Words = std::vector<std::string>;

/// Without evaluations, as these tests are of parameters.
const Words quiet{"zo/steps=30", "data/dev=", "data/test=", "output/write models=never"};
const Words every_eight = with(quiet, {"checkpoint/every steps=8"});
/// Stops after the next step, as its time is over: no clock decides.
const std::string stops = "checkpoint/time limit=0.001 s";

std::set<std::string> entries_of(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    names.insert(entry.path().filename().string());
  return names;
}

json manifest(const TinyProject& project, const std::string& checkpoint) {
  return json::parse(text_of_file(project.path("run/checkpoints/" + checkpoint + "/manifest.json")));
}

TEST(Checkpoints, are_taken_every_so_many_steps_and_old_ones_go) {
  const TinyProject project;
  const ProgramResult result = project.train(every_eight);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* step : {"8", "16", "24"})
    EXPECT_NE(line_of(result.out, "checkpoint of step " + std::string(step) + ": "), "") << result.out;
  EXPECT_EQ(entries_of(project.path("run/checkpoints")), (std::set<std::string>{"step-16", "step-24"}));
  EXPECT_EQ(entries_of(project.path("run/checkpoints/step-24")),
            (std::set<std::string>{"chunks-000000.bin", "manifest.json"}));
  // The parameters in their storage precision, each run of them at a page of its own.
  const auto bytes = manifest(project, "step-24").at("parts").at(0).at("bytes").get<std::uintmax_t>();
  EXPECT_EQ(bytes, fs::file_size(project.path("run/checkpoints/step-24/chunks-000000.bin")));
  // The digest that the trajectory has of the same step.
  const Trajectory t = read_trajectory(project.path("run/trajectory.zoj"));
  ASSERT_EQ(t.digests.size(), 4U);
  EXPECT_EQ(t.digests[2].t, 24U);
  std::ostringstream hex;
  hex << std::hex << std::setw(16) << std::setfill('0') << t.digests[2].theta_digest;
  EXPECT_EQ(manifest(project, "step-24").at("theta_digest"), hex.str());
}

TEST(Checkpoints, change_no_bit) {
  const TinyProject project;
  const json without = project.trained(with(quiet, {"output/folder=without"}));
  project.trained(every_eight);
  expect_same_run(project.summary(), project.summary("without"));
  EXPECT_FALSE(fs::exists(project.path("without/checkpoints")));
}

TEST(Checkpoints, as_many_as_the_deck_keeps) {
  const TinyProject project;
  project.trained(with(quiet, {"checkpoint/every steps=5", "checkpoint/keep=1"}));
  EXPECT_EQ(entries_of(project.path("run/checkpoints")), (std::set<std::string>{"step-25"}));
}

TEST(Checkpoints, by_the_clock_are_taken_after_the_step_at_which_they_are_due) {
  const TinyProject project;
  project.trained(with(quiet, {"checkpoint/every minutes=1e-9", "zo/steps=5"}));
  EXPECT_EQ(entries_of(project.path("run/checkpoints")), (std::set<std::string>{"step-3", "step-4"}));
}

TEST(Checkpoints, are_what_a_resume_begins_with_in_every_precision) {
  for (const Words& form : {Words{}, Words{"precision/storage=bf16", "precision/round every=5"},
                            Words{"precision/storage=fp16", "zo/weight decay=0.5", "zo/directions=2"}}) {
    const TinyProject project;
    const Words sets = with(every_eight, form);
    const json whole = project.trained(with(sets, {"output/folder=whole"}));
    ASSERT_EQ(project.train(with(sets, {"zo/steps=29"})).exit_code, 0);
    const ProgramResult resumed = project.train(sets, resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(line_of(resumed.out, "resumed  "),
              "after step 29, from the checkpoint of step 24 and by replay of 5 records");
    expect_same_run(project.summary(), whole);
  }
}

TEST(Checkpoints, that_are_damaged_are_passed_over_and_what_is_left_of_them_counts) {
  const TinyProject project;
  const Words sets = every_eight;
  const json whole = project.trained(with(sets, {"output/folder=whole"}));
  ASSERT_EQ(project.train(with(sets, {"zo/steps=29"})).exit_code, 0);
  fs::copy(project.path("run"), project.path("kept"), fs::copy_options::recursive);
  const std::string newest = "run/checkpoints/step-24/", part = newest + "chunks-000000.bin";
  const auto flip = [&](const std::string& file, std::uintmax_t at) {
    std::string bytes = text_of_file(project.path(file));
    bytes[at] = static_cast<char>(bytes[at] ^ 16);
    project.write(file, bytes);
  };
  const std::uintmax_t bytes = size_of(project.path(part));
  struct Case {
    std::function<void()> damage;
    const char* said;
  };
  for (const Case& c :
       std::vector<Case>{{[&] { flip(part, 5000); }, "its checksum does not match"},
                         {[&] { flip(part, bytes - 4096); }, "its index's checksum does not match"},
                         {[&] { fs::resize_file(project.path(part), bytes - 4096); }, "were expected"},
                         {[&] { fs::remove(project.path(part)); }, "cannot be opened"},
                         {[&] { flip(newest + "manifest.json", 40); }, "step-24/manifest.json"},
                         {[&] { fs::remove(project.path(newest + "manifest.json")); }, "step-24/manifest.json"},
                         {[&] {
                            flip(part, 5000);
                            flip("run/checkpoints/step-16/chunks-000000.bin", 5000);
                          },
                          "the base model, by replay"},
                         {[&] {
                            for (const char* step : {"16", "24"})
                              fs::remove_all(project.path("run/checkpoints/step-" + std::string(step)));
                          },
                          "by replay"}}) {
    c.damage();
    const ProgramResult resumed = project.train(sets, resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_NE(resumed.out.find(c.said), std::string::npos) << "\"" << c.said << "\" is not in:\n" << resumed.out;
    expect_same_run(project.summary(), whole);
    fs::remove_all(project.path("run"));
    fs::copy(project.path("kept"), project.path("run"), fs::copy_options::recursive);
  }
}

TEST(Checkpoints, of_another_continuation_are_not_taken) {
  const TinyProject project, other;
  const json whole = project.trained(with(every_eight, {"output/folder=whole"}));
  ASSERT_EQ(project.train(with(every_eight, {"zo/steps=29"})).exit_code, 0);
  other.trained(with(every_eight, {"zo/seed=8"}));
  for (const char* step : {"16", "24"}) {
    const std::string name = "run/checkpoints/step-" + std::string(step);
    fs::remove_all(project.path(name));
    fs::copy(other.path(name), project.path(name), fs::copy_options::recursive);
  }
  const ProgramResult resumed = project.train(every_eight, resume);
  EXPECT_NE(resumed.out.find("it is of another run"), std::string::npos) << resumed.out;
  EXPECT_EQ(line_of(resumed.out, "resumed  "), "after step 29, by replay");
  expect_same_run(project.summary(), whole);
}

TEST(Checkpoints, are_gone_on_with_after_kills_at_any_step) {
  const TinyProject project;
  const Words sets = with(every_eight, {"zo/steps=400", "checkpoint/every steps=7"});
  const json whole = project.trained(with(sets, {"output/folder=whole"}));
  for (int i = 0; i < 4; ++i)
    kill_at_bytes(project, train_words("deck.yaml", sets, resume),
                  size_of(project.path("run/trajectory.zoj")) + 64 * 60);
  expect_same_run(project.trained(sets, resume), whole);
  for (const std::string& name : entries_of(project.path("run/checkpoints")))
    EXPECT_EQ(name.find("partial"), std::string::npos);
}

TEST(Checkpoints, at_a_stop_are_taken_where_the_time_left_allows_it) {
  const TinyProject project;
  const Words sets = with(quiet, {"checkpoint/every steps=1000"});
  const json whole = project.trained(with(sets, {"output/folder=whole"}));
  // A time limit that is over leaves none.
  const ProgramResult late = project.train(with(sets, {stops}), resume);
  EXPECT_EQ(late.exit_code, 75) << late.err;
  EXPECT_NE(line_of(late.out, "no checkpoint at this stop: it would take about "), "") << late.out;
  EXPECT_NE(late.out.find("1 step would be replayed"), std::string::npos) << late.out;
  EXPECT_TRUE(entries_of(project.path("run/checkpoints")).empty());
  // A signal leaves enough.
  RunningProgram program(train_words("deck.yaml", with(sets, {"zo/steps=100000"}), resume), project.here());
  wait_for_text(program, "tokens/s");
  program.send(SIGTERM);
  const ProgramResult stopped = program.wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_NE(line_of(stopped.out, "checkpoint at this stop: it takes about "), "") << stopped.out;
  const std::string steps = std::to_string(read_trajectory(project.path("run/trajectory.zoj")).steps.size());
  EXPECT_EQ(entries_of(project.path("run/checkpoints")), (std::set<std::string>{"step-" + steps}));
  const ProgramResult resumed = project.train(with(sets, {"zo/steps=100000", stops}), resume);
  EXPECT_EQ(resumed.exit_code, 75) << resumed.err;
  EXPECT_EQ(line_of(resumed.out, "resumed  "),
            "after step " + steps + ", from the checkpoint of step " + steps + " and by replay of 0 records");
}

TEST(Checkpoints, of_a_batch_job_that_ends_soon_are_not_begun) {
  const TinyProject project;
  const std::string now = std::to_string(std::time(nullptr));
  const ProgramResult late =
      project.train(with(quiet, {"checkpoint/every steps=1000"}), {}, {.environment = {"SLURM_JOB_END_TIME=" + now}});
  EXPECT_EQ(late.exit_code, 75) << late.err;
  EXPECT_NE(line_of(late.out, "stopped  at the time limit after step "), "") << late.out;
  EXPECT_NE(line_of(late.out, "no checkpoint at this stop"), "") << late.out;
}

class CheckpointFaults : public StoreOnDisk {};

TEST_F(CheckpointFaults, of_a_full_or_broken_disk_leave_the_run_as_it_is) {
  if (!can_preload) return;
  const Words sets = every_eight;
  const json whole = project_.trained(distzo2::with(sets, {"output/folder=plain"}));
  struct Case {
    const char *fault, *said;
  };
  for (const Case& c : {Case{"fallocate .step-16 1 28", "are free on this file system"},
                        Case{"pwritev .step-16 3 28", "cannot be written: No space left on device"},
                        Case{"fdatasync .step-16 1 5", "cannot be made durable: Input/output error"},
                        Case{"fsync .step-16 1 5", "cannot be made durable: Input/output error"},
                        Case{"fsync manifest.json 2 5", "cannot be made durable: Input/output error"}}) {
    SCOPED_TRACE(c.fault);
    const ProgramResult result = project_.train(sets, {}, with_fault(c.fault));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_NE(result.out.find("warning  no checkpoint of step 16: "), std::string::npos) << result.out;
    EXPECT_NE(result.out.find(c.said), std::string::npos) << result.out;
    expect_same_run(project_.summary(), whole);
    for (const std::string& name : entries_of(project_.path("run/checkpoints")))
      EXPECT_TRUE(name == "step-8" || name == "step-24") << name;
    EXPECT_TRUE(entries_of(project_.path("run/checkpoints")).contains("step-8"));
    fs::remove_all(project_.path("run"));
  }
}

TEST_F(CheckpointFaults, of_a_process_killed_while_it_writes_one_leave_the_one_before) {
  if (!can_preload) return;
  const json whole = project_.trained(distzo2::with(every_eight, {"output/folder=plain"}));
  for (const char* fault : {"pwritev .step-16 3 kill", "fdatasync .step-16 1 kill", "fsync .step-16 1 kill",
                            "fsync .step-16 2 kill", "fsync .step-16 3 kill"}) {
    SCOPED_TRACE(fault);
    EXPECT_EQ(project_.train(every_eight, {}, with_fault(fault)).signal, SIGKILL);
    const ProgramResult resumed = project_.train(every_eight, resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    expect_same_run(project_.summary(), whole);
    for (const std::string& name : entries_of(project_.path("run/checkpoints")))
      EXPECT_TRUE(name.starts_with("step-")) << name;
    fs::remove_all(project_.path("run"));
  }
}

class CheckpointTiers : public StoreOnDisk {};

TEST_F(CheckpointTiers, go_from_memory_to_a_disk_and_back) {
  const Words both = distzo2::with(every_eight, {"zo/steps=21"}), more = every_eight;
  const json whole = project_.trained(distzo2::with(more, {"output/folder=plain"}));
  // One byte less than all of it would take, with what a checkpoint takes on its way.
  const Words plan{"plan", "deck.yaml", "--json", "--set", "memory/groups=on", "--set", "checkpoint/every steps=8"};
  const auto bytes = project_.json(plan).at("host").at("bytes").get<std::uint64_t>();
  const std::string budget = "memory/host budget=" + std::to_string(bytes - 1) + " B";
  for (const bool from_disk : {false, true}) {
    SCOPED_TRACE(from_disk);
    const auto tier = [&](bool disk, const Words& sets) {
      return disk ? distzo2::with(sets_, distzo2::with(sets, {budget})) : sets;
    };
    ASSERT_EQ(project_.train(tier(from_disk, both)).exit_code, 0);
    const ProgramResult resumed = project_.train(tier(!from_disk, more), resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(line_of(resumed.out, "resumed  "),
              "after step 21, from the checkpoint of step 16 and by replay of 5 records");
    expect_same_run(project_.summary(), whole);
    fs::remove_all(project_.path("run"));
  }
}

}  // namespace
}  // namespace distzo2
