// SPDX-License-Identifier: BSD-3-Clause
// `inspect` of a run folder tells how far the run is and what it has come to.
#include <gtest/gtest.h>

#include <array>
#include <ctime>

#include "app/run_folder.hpp"
#include "app/run_lock.hpp"
#include "app/run_status.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

/// As in ISO 8601, whose texts are in the order of the times.
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

TEST(InspectRun, tells_a_finished_run_as_its_summary_does) {
  const TinyProject project;
  const std::string before = utc_now();
  const json summary = project.trained();
  const std::string ended = summary.at("ended"), after = utc_now();
  EXPECT_LE(before, ended);
  EXPECT_LE(ended, after);
  const json run = project.json({"inspect", "run", "--json"}).at("run");
  EXPECT_EQ(run.at("status"), "finished");
  EXPECT_EQ(run.at("ended"), ended);
  EXPECT_EQ(run.at("steps_done"), 12);
  EXPECT_EQ(run.at("steps_of_deck"), 12);
  EXPECT_EQ(run.at("model"), project.path("model").string());
  EXPECT_EQ(run.at("commit"), summary.at("git_hash"));
  for (const auto& [end, of_summary, step] : {std::tuple{"first", "initial", 0}, {"last", "final", 12}}) {
    EXPECT_EQ(run.at(end).at("set"), "test");
    EXPECT_EQ(run.at(end).at("step"), step);
    EXPECT_EQ(run.at(end).at("accuracy"), summary.at(of_summary).at("accuracy"));
    EXPECT_EQ(run.at(end).at("loss"), summary.at(of_summary).at("loss"));
  }
  for (const char* key : {"step", "set", "accuracy", "loss"})
    EXPECT_EQ(run.at("best").at(key), summary.at("best").at(key)) << key;
  EXPECT_FALSE(project.json({"inspect", "run/trajectory.zoj", "--json"}).contains("run"));

  const std::string text = project.run({"inspect", "run"}).out;
  EXPECT_EQ(line_of(text, "status     "), "finished after step 12 of 12");
  EXPECT_EQ(line_of(text, "ended      "), ended);
  EXPECT_EQ(line_of(text, "commit     "), summary.at("git_hash").get<std::string>());
}

TEST(InspectRun, tells_a_stopped_run_by_what_it_has) {
  const TinyProject project;  // its time is over before the first step, and so it does one
  ASSERT_EQ(project.train({"zo/steps=3", "data/dev=", "data/test=", "checkpoint/time limit=0.001 s"}).exit_code, 75);
  const json run = project.json({"inspect", "run", "--json"}).at("run");
  EXPECT_EQ(run.at("status"), "stopped");
  EXPECT_EQ(run.at("steps_done"), 1);
  EXPECT_EQ(run.at("steps_of_deck"), 3);
  for (const char* key : {"first", "last", "best", "commit"}) EXPECT_TRUE(run.at(key).is_null()) << key;
  EXPECT_EQ(line_of(project.run({"inspect", "run"}).out, "status     "), "stopped after step 1 of 3");
}

TEST(InspectRun, tells_a_run_that_a_process_works_on) {
  const TinyProject project;
  project.trained();
  const RunLock working(RunFolder{project.path("run")});
  EXPECT_EQ(project.json({"inspect", "run", "--json"}).at("run").at("status"), "running");
}

TEST(InspectRun, tells_a_run_that_has_no_trajectory_yet) {
  const TinyProject project;
  project.write("run/store/chunks.bin", "of a model on its way");
  expect_one_line(project.run({"inspect", "run"}), 3, {"neither a run folder"});
  const RunLock working(RunFolder{project.path("run")});
  const json run = project.json({"inspect", "run", "--json"}).at("run");
  EXPECT_EQ(run.at("status"), "running");
  EXPECT_EQ(run.at("steps_done"), 0);
  const ProgramResult text = project.run({"inspect", "run"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(line_of(text.out, "status     "), "running after step 0");
}

TEST(InspectRun, takes_first_and_last_of_the_test_set_or_of_the_dev_set_until_that_has_both) {
  const TinyProject project;
  project.trained();
  const RunFolder folder{project.path("run")};
  const Trajectory trajectory = read_trajectory(folder.trajectory());
  const auto line = [](int step, const std::string& set, const std::string& accuracy) {
    return "{\"step\": " + std::to_string(step) + ", \"evaluation\": {\"set\": \"" + set +
           "\", \"accuracy\": " + accuracy + R"(, "loss": 1.0, "examples": 4, "confusion": [4]}})" + "\n";
  };
  const std::string begin = line(0, "dev", "0.25") + line(0, "test", "0.5") + line(5, "dev", "0.75");
  project.write("run/metrics.jsonl", begin + line(10, "dev", "0.5"));
  RunStatus status = read_run_status(folder, trajectory);
  EXPECT_EQ(status.first.value().result.accuracy, 0.25);
  EXPECT_EQ(status.last.value().step, 10U);
  EXPECT_EQ(status.best.value().step, 5U);
  project.write("run/metrics.jsonl", begin + line(12, "test", "1.0"));
  status = read_run_status(folder, trajectory);
  EXPECT_EQ(status.first.value().result.accuracy, 0.5);
  EXPECT_EQ(status.last.value().result.accuracy, 1.0);
  project.write("run/metrics.jsonl", line(0, "test", "0.5"));  // all that there is
  status = read_run_status(folder, trajectory);
  EXPECT_EQ(status.last.value().set, "test");
  EXPECT_FALSE(status.best.has_value());
}

}  // namespace
}  // namespace distzo2
