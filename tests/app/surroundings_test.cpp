// SPDX-License-Identifier: BSD-3-Clause
// What stands around a run: closed streams, the environment, and what others write into its places.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

#include "io/output_file.hpp"
#include "io/trajectory_file.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

ProgramOptions with_streams(const std::string& redirections) {
  return {.wrapper = {"sh", "-c", "exec \"$0\" \"$@\" " + redirections}};
}

TEST(ClosedStreams, do_not_lend_their_numbers_to_the_runs_files) {
  for (const char* closed : {">&-", "2>&- <&-", "<&- >&- 2>&-"}) {
    const TinyProject project;
    EXPECT_EQ(project.train({}, {}, with_streams(closed)).exit_code, 0) << closed;
    EXPECT_EQ(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 12U) << closed;
  }
}

TEST(FullStreams, are_noticed_by_help_and_version) {
  const TinyProject project;
  for (const char* option : {"--help", "--version"}) {
    expect_one_line(project.run({option}, with_streams("> /dev/full")), 3, {"what the command prints"});
  }
}

TEST(Environment, of_openmp_and_kokkos_cannot_break_a_run) {
  const TinyProject project;
  for (const char* variable :
       {"OMP_DYNAMIC=true", "OMP_MAX_ACTIVE_LEVELS=0", "OMP_NESTED=junk", "OMP_SCHEDULE=junk", "OMP_PLACES={0",
        "OMP_PLACES=cores", "OMP_PROC_BIND=junk", "OMP_DISPLAY_ENV=true", "OMP_STACKSIZE=junk", "GOMP_SPINCOUNT=junk",
        "OMP_THREAD_LIMIT=junk", "OMP_THREAD_LIMIT=2", "KOKKOS_NUM_DEVICES=junk", "KOKKOS_TOOLS_LIBS="}) {
    SCOPED_TRACE(variable);
    EXPECT_EQ(project.json({"evaluate", "deck.yaml", "--json"}, {.environment = {variable, "OMP_NUM_THREADS=2"}})
                  .at("machine")
                  .at("threads"),
              2);
  }
  const ProgramOptions one{.environment = {"OMP_THREAD_LIMIT=1", "OMP_NUM_THREADS=2"}};
  expect_one_line(project.run({"evaluate", "deck.yaml"}, one), 2, {"OMP_THREAD_LIMIT", "1", "2"});
  expect_one_line(project.run({"evaluate", "deck.yaml", "--set", "parallel/threads=3"}, one), 2, {"OMP_THREAD_LIMIT"});
}

TEST(Exports, to_one_place_at_once_give_one_whole_model) {
  const TinyProject project;
  project.trained();
  const auto words = [](const std::string& step, const std::string& output) {
    return std::vector<std::string>{"export", "--trajectory", "run", "--step", step, "--output", output};
  };
  std::vector<std::string> wanted;
  for (const char* step : {"0", "12"}) {
    ASSERT_EQ(project.run(words(step, std::string("alone") + step)).exit_code, 0);
    wanted.push_back(text_of_file(project.path(std::string("alone") + step + "/model.safetensors")));
  }
  project.write("x.partial/mine", "kept");
  for (int i = 0; i < 5; ++i) {
    fs::remove_all(project.path("x"));
    RunningProgram first(words("0", "x"), project.here()), second(words("12", "x"), project.here());
    const int codes[] = {first.wait().exit_code, second.wait().exit_code};
    EXPECT_EQ(std::min(codes[0], codes[1]), 0);
    EXPECT_EQ(std::max(codes[0], codes[1]), 2);
    EXPECT_EQ(text_of_file(project.path("x/model.safetensors")), wanted[codes[0] == 0 ? 0 : 1]);
  }
  EXPECT_EQ(text_of_file(project.path("x.partial/mine")), "kept");
  for (const fs::directory_entry& entry : fs::directory_iterator(project.path())) {
    EXPECT_FALSE(is_made_beside(project.path("x"), entry.path().filename().string())) << entry.path();
  }
}

TEST(Options, without_a_value_or_a_place_are_refused) {
  const TinyProject project;
  project.trained();
  const std::vector<std::string> exported{"export", "--trajectory", "run", "--output"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_one_line(project.run(with(exported, {""})), 2, {"--output", "empty"});
  expect_one_line(project.run(with(exported, {"x", "--step", ""})), 2, {"--step"});
  expect_one_line(project.run(with(exported, {"x", "--model", ""})), 2, {"--model", "empty"});
  expect_one_line(project.run(with(exported, {"none/x"})), 2, {"--output", "none"});
  expect_one_line(project.run({"evaluate", "deck.yaml", "--model", ""}), 2, {"--model", "empty"});
  const std::vector<std::string> evaluate{"evaluate", "deck.yaml", "--predictions"};
  expect_one_line(project.run(with(evaluate, {""})), 2, {"--predictions", "empty"});
  expect_one_line(project.run(with(evaluate, {"none/p.jsonl"})), 2, {"--predictions", "none/p.jsonl"});
  for (const char* command : {"train", "validate", "plan", "evaluate", "inspect"})
    expect_one_line(project.run({command, ""}), 2, {"the value is empty"});
  const std::string before = text_of_file(project.path("run/trajectory.zoj"));
  expect_one_line(project.run(with(evaluate, {"run/trajectory.zoj"})), 2, {"--predictions", "trajectory.zoj"});
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), before);
}

TEST(Resume, refuses_other_evaluation_data) {
  const TinyProject project;
  project.trained();
  fs::remove(project.path("run/summary.json"));
  for (const char* set : {"dev", "test"}) {
    const std::string name = std::string(set) + ".tsv", text = text_of_file(project.path(name));
    std::string other = text;
    other[other.find("row ")] = 'R';
    project.write(name, other);
    expect_one_line(project.train({}, resume), 2, {"cannot go on", std::string("data/") + set, name});
    project.write(name, text);
  }
  project.trained({}, resume);
}

TEST(Resume, takes_no_empty_summary_for_a_finished_run) {
  const TinyProject project;
  const json expected = project.trained();
  project.write("run/summary.json", "");
  EXPECT_EQ(project.trained({}, resume).at("theta_digest"), expected.at("theta_digest"));
  fs::remove(project.path("run/summary.json"));
  fs::create_directory(project.path("run/summary.json"));
  expect_one_line(project.train({}, resume), 3, {"summary.json"});
}

TEST(Trajectories, that_are_lost_while_a_run_writes_end_it_with_an_error) {
  const TinyProject project;
  RunningProgram program(train_words("deck.yaml", {"zo/steps=2000", "zo/learning rate=0", "output/evaluate every=0"}),
                         project.here());
  wait_for_text(program, "tokens/s");
  fs::rename(project.path("run/trajectory.zoj"), project.path("elsewhere"));
  expect_one_line(program.wait(), 3, {"run/trajectory.zoj"});
  EXPECT_FALSE(fs::exists(project.path("run/summary.json")));
}

TEST(Runs, whose_folder_is_moved_meanwhile_end_with_an_error_and_do_not_make_it_again) {
  const TinyProject project;
  RunningProgram program(train_words("deck.yaml", {"zo/steps=1000000", "output/evaluate every=200"}), project.here());
  wait_for_text(program, "tokens/s");
  fs::rename(project.path("run"), project.path("elsewhere"));
  expect_one_line(program.wait(), 3, {project.path("run").string() + ": ", "folder is no longer there"});
  EXPECT_FALSE(fs::exists(project.path("run")));
  EXPECT_GT(read_trajectory(project.path("elsewhere/trajectory.zoj")).steps.size(), 0U);
}

TEST(Trajectories, with_a_torn_tail_are_exported_with_a_note) {
  const TinyProject project;
  project.trained();
  std::ofstream(project.path("run/trajectory.zoj"), std::ios::app) << "half";
  const ProgramResult result = project.run({"export", "--trajectory", "run", "--output", "a"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("note "), 0U) << result.out;
  EXPECT_EQ(project.json({"export", "--trajectory", "run", "--output", "b", "--json"}).at("torn"), true);
}

TEST(Runs, that_end_without_finite_answers_end_with_an_error) {
  const TinyProject project;
  std::string weights = text_of_file(project.path("model/model.safetensors"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(weights.data() + weights.size() - sizeof(nan), &nan, sizeof(nan));
  project.write("model/model.safetensors", weights);
  expect_one_line(project.train({"model/allow non-finite weights=true"}), 4, {"last evaluation"});
  EXPECT_EQ(project.summary().at("final").at("accuracy"), 0.0);
}

TEST(Texts, of_any_bytes_are_printed_safely) {
  const TinyProject project;
  expect_one_line(project.run({"inspect", "x\n\x1b[31m\xff"}), 3, {"x\\n\\x1b[31m\\xff"});
  fs::rename(project.path("model"), project.path("m\xff"));
  EXPECT_NO_THROW(project.json({"evaluate", "deck.yaml", "--json", "--model", "m\xff"}));
}

TEST(RunNumbers, beyond_any_count_are_passed_over) {
  const TinyProject project;
  fs::create_directories(project.path("runs/deck-2147483647"));
  EXPECT_EQ(project.train({"output/folder="}).exit_code, 0);
  EXPECT_TRUE(fs::exists(project.path("runs/deck-001/summary.json")));
}

TEST(DevExamples, of_zero_mean_no_dev_set) {
  const TinyProject project;
  project.trained({"data/dev examples=0"});
  for (const json& line : project.metrics()) {
    EXPECT_NE(line.value("/evaluation/set"_json_pointer, ""), "dev");
  }
}

}  // namespace
}  // namespace distzo2
