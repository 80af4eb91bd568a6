// SPDX-License-Identifier: BSD-3-Clause
// `--resume STEP` and `--resume PATH`, and what `--change` lets a resume change.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/trajectory_file.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

const Words sets{"zo/steps=30", "output/evaluate every=10", "checkpoint/every steps=8"};

Words from(const std::string& what) {
  return {"--resume", what};
}

/// The run, and then one to compare it with, of the same bytes.
struct FinishedRun : TinyProject {
  FinishedRun() : whole(trained(sets)) {}
  nlohmann::json whole;
};

TEST(ResumeStep, goes_back_and_comes_to_the_same_end_and_keeps_what_was_done) {
  const FinishedRun project;
  const std::string trajectory = text_of_file(project.path("run/trajectory.zoj"));
  const std::string metrics = text_of_file(project.path("run/metrics.jsonl"));
  const ProgramResult back = project.train(sets, from("20"));
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(line_of(back.out, "resuming "), project.path("run").string() + ", which has 30 steps, from step 20");
  EXPECT_NE(line_of(back.out, "begins   with " + project.path("run/checkpoints/step-16").string()), "") << back.out;
  EXPECT_NE(back.out.find("replays 4 records"), std::string::npos) << back.out;
  expect_same_run(project.summary(), project.whole);
  expect_each_step_once(project.metrics(), 30);
  const fs::path kept = project.path("run/set-aside-001");
  EXPECT_EQ(text_of_file(kept / "trajectory.zoj"), trajectory);
  EXPECT_EQ(text_of_file(kept / "metrics.jsonl"), metrics);
  EXPECT_EQ(json::parse(text_of_file(kept / "summary.json")), project.whole);
  EXPECT_TRUE(fs::exists(kept / "final/model.safetensors"));
  EXPECT_TRUE(fs::exists(project.path("run/final/model.safetensors")));
}

TEST(ResumeStep, before_every_checkpoint_is_served_by_replay) {
  const FinishedRun project;
  const ProgramResult back = project.train(sets, from("5"));
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_NE(line_of(back.out, "begins   with the base model, and replays 5 records (about "), "") << back.out;
  expect_same_run(project.summary(), project.whole);
  EXPECT_EQ(project.train(sets, from("0")).exit_code, 0);
  expect_same_run(project.summary(), project.whole);
  EXPECT_TRUE(fs::exists(project.path("run/set-aside-002/trajectory.zoj")));
}

TEST(ResumeStep, of_a_run_that_has_not_so_many_steps_is_refused) {
  const FinishedRun project;
  expect_one_line(project.train(sets, from("31")), 2, {"--resume 31", "has 30 steps"});
  expect_one_line(project.train(with(sets, {"output/folder=new"}), from("3")), 2, {"--resume 3", "there is no run"});
  EXPECT_NE(project.train(sets, from("30")).out.find("is finished"), std::string::npos);
  EXPECT_FALSE(fs::exists(project.path("run/set-aside-001")));
}

TEST(ResumePath, begins_a_new_run_with_the_steps_of_another_and_leaves_that_as_it_is) {
  const FinishedRun project;
  const std::string trajectory = text_of_file(project.path("run/trajectory.zoj"));
  const Words longer = with(sets, {"zo/steps=40", "output/folder=longer"});
  const json straight = project.trained(with(sets, {"zo/steps=40", "output/folder=straight"}));
  const ProgramResult first = project.train(longer, from("run"));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("begins   with " + project.path("run/checkpoints/step-24").string()), std::string::npos)
      << first.out;
  expect_same_run(project.summary("longer"), straight);
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), trajectory);
  EXPECT_TRUE(fs::exists(project.path("run/summary.json")));
  expect_one_line(project.train(longer, from("run")), 2, {"holds a run already"});
  // A checkpoint, from its step on.
  const ProgramResult second = project.train(with(sets, {"output/folder=third"}), from("run/checkpoints/step-16/"));
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(line_of(second.out, "resuming "), project.path("run").string() + ", which has 30 steps, from step 16");
  expect_same_run(project.summary("third"), project.whole);
  EXPECT_FALSE(fs::exists(project.path("run/set-aside-001")));
}

TEST(ResumePath, of_the_runs_own_folder_goes_on_there) {
  const FinishedRun project;
  const json straight = project.trained(with(sets, {"zo/steps=35", "output/folder=straight"}));
  EXPECT_EQ(project.train(with(sets, {"zo/steps=35"}), from("run")).exit_code, 0);
  expect_same_run(project.summary(), straight);
  // What was set aside is a run like any other.
  EXPECT_EQ(project.train(with(sets, {"zo/steps=35"}), from("10")).exit_code, 0);
  EXPECT_EQ(project.train(with(sets, {"zo/steps=35", "output/folder=again"}), from("run/set-aside-001")).exit_code, 0);
  expect_same_run(project.summary("again"), straight);
}

TEST(ResumePath, that_holds_no_run_is_refused) {
  const FinishedRun project;
  for (const char* path : {"autp", "model"})
    expect_one_line(project.train(sets, from(path)), 2, {std::string("--resume ") + path, "accepted: auto, a step"});
  fs::create_directories(project.path("alone/checkpoints"));
  fs::copy(project.path("run/checkpoints/step-24"), project.path("alone/checkpoints/step-24"),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  expect_one_line(project.train(sets, from("alone/checkpoints/step-24")), 2,
                  {"without its run", "alone/trajectory.zoj"});
}

TEST(ResumeChange, by_name_is_made_and_recorded_and_replayed) {
  const FinishedRun project;
  const Words changed = with(sets, {"zo/learning rate=2e-3", "zo/steps=40"});
  expect_one_line(project.train(changed, resume), 2, {"zo/learning rate: 0.002 was 0.001", "--change KEY"});
  const ProgramResult result = project.train(changed, {"--resume", "auto", "--change", "zo/learning rate"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(line_of(result.out, "changed  "), "zo/learning rate from step 30 on: 0.002 was 0.001");
  EXPECT_EQ(json::parse(text_of_file(project.path("run/changes.jsonl"))),
            (json{{"step", 30}, {"key", "zo/learning rate"}, {"from", "0.001"}, {"to", "0.002"}}));
  const Trajectory t = read_trajectory(project.path("run/trajectory.zoj"));
  EXPECT_EQ(t.steps.at(29).lr, 1e-3);
  EXPECT_EQ(t.steps.at(30).lr, 2e-3);
  // Replay needs to know nothing of it, and a resume goes on with it unasked.
  const json exported = project.json({"export", "--trajectory", "run", "--output", "theta", "--json"});
  EXPECT_EQ(exported.at("theta_digest"), project.summary().at("theta_digest"));
  EXPECT_EQ(project.train(with(changed, {"zo/steps=45"}), resume).exit_code, 0);
  expect_one_line(project.train(with(sets, {"zo/steps=50"}), resume), 2, {"zo/learning rate: 0.001 was 0.002"});
  // Before it, the first value is the run's again.
  EXPECT_EQ(project.train(with(sets, {"zo/steps=40"}), from("25")).exit_code, 0);
  EXPECT_EQ(text_of_file(project.path("run/changes.jsonl")), "");
  const json straight = project.trained(with(sets, {"zo/steps=40", "output/folder=straight"}));
  expect_same_run(project.summary(), straight);
}

TEST(ResumeChange, of_batch_schedule_and_data_is_made) {
  const FinishedRun project;
  project.write("other.tsv", text_of_file(project.path("train.tsv")) + "one more row\t1\n");
  const Words changed = with(sets, {"zo/schedule=linear", "zo/steps=40", "zo/batch=3", "data/train=other.tsv"});
  const ProgramResult result = project.train(
      changed, {"--resume", "auto", "--change", "zo/schedule", "--change", "zo/batch", "--change", "data/train"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(project.json({"export", "--trajectory", "run", "--output", "theta", "--json"}).at("theta_digest"),
            project.summary().at("theta_digest"));
  EXPECT_NE(project.train(changed, resume).out.find("is finished"), std::string::npos);
  expect_one_line(project.train(with(changed, {"zo/steps=41"}), resume), 2, {"zo/steps: 41 was 40"});
}

TEST(ResumeChange, of_what_every_record_is_read_by_is_refused) {
  const FinishedRun project;
  for (const char* key : {"zo/seed", "zo/epsilon", "zo/directions", "precision/storage", "precision/round every"})
    expect_one_line(project.train(sets, {"--resume", "auto", "--change", key}), 2,
                    {std::string("--change ") + key, "Begin a new run"});
  expect_one_line(project.train(sets, {"--resume", "auto", "--change", "zo/learning rat"}), 2,
                  {"did you mean \"zo/learning rate\""});
  EXPECT_EQ(project.train(sets, {"--change", "zo/batch"}).exit_code, 2);  // without --resume
}

}  // namespace
}  // namespace distzo2
