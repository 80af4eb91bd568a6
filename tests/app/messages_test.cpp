// SPDX-License-Identifier: BSD-3-Clause
// What the program says while it works and when it is done.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "app/next_command.hpp"
#include "app/summary.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

TEST(RunMessages, name_the_threads_the_instruction_set_and_the_gemm) {
  const TinyProject project;
  const auto compute = [&](const std::string& gemm, const std::string& threads, const std::string& folder) {
    const ProgramResult result =
        project.train({"output/folder=" + folder}, {},
                      {.environment = {"OMP_NUM_THREADS=" + threads, "DISTZO2_ISA=avx2", "DISTZO2_GEMM=" + gemm}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find("arithmetic"), std::string::npos) << result.out;
    return line_of(result.out, "compute  ");
  };
  EXPECT_EQ(compute("onednn", "2", "a").find("fp32, 2 threads, instruction set avx2, GEMM oneDNN "), 0U);
  EXPECT_EQ(compute("kokkosblas", "1", "b").find("fp32, 1 thread, instruction set avx2, GEMM KokkosBlas"), 0U);
  EXPECT_EQ(
      line_of(project.train({"output/folder=c", "precision/compute=fp16"}).out, "compute  ").find("fp16, 1 thread"),
      0U);
  // What the bits depend on in full is in the summary and the trajectory.
  for (const json& kept : {project.summary("a"), project.json({"inspect", "a", "--json"})})
    EXPECT_NE(kept.at("arithmetic").get<std::string>().find("; kernels avx2; compute fp32; tiles "), std::string::npos);
}

TEST(RunMessages, name_the_limit_that_the_memory_is_within) {
  const TinyProject project;
  const std::string line = line_of(project.train({"memory/host budget=500 MiB"}).out, "memory   ");
  EXPECT_NE(line.find(" of parameters; on the host "), std::string::npos) << line;
  EXPECT_NE(line.find(" of 500.0 MiB in all ("), std::string::npos) << line;
}

TEST(RunMessages, end_with_the_command_that_evaluates_the_result) {
  const TinyProject project;
  const std::string name = "it's here";
  const ProgramResult run = project.train({"output/folder=" + name, "zo/seed=8"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string line = line_of(run.out, "evaluate ");
  const ProgramResult evaluation = project.run_line(line + " --json");
  ASSERT_EQ(evaluation.exit_code, 0) << line << "\n" << evaluation.err;
  const json result = json::parse(evaluation.out), summary = project.summary(name);
  EXPECT_EQ(result.at("loss"), summary.at("final").at("loss"));
  EXPECT_EQ(result.at("theta_digest"), summary.at("theta_digest"));
}

TEST(RunMessages, name_a_scratch_folder_to_evaluate_what_fits_no_memory) {
  RunConfig config;
  config.model.folder = "/model";
  MemoryPlan plan;
  const auto ends_with = [&](const std::string& end) {
    return next_command(config, {"/runs/a b"}, plan, FinalModel::evaluated).ends_with(end);
  };
  EXPECT_TRUE(ends_with(" --model '/runs/a b/final'"));
  plan.disk_bytes = 1;
  EXPECT_TRUE(ends_with(" --model '/runs/a b/final' --set 'memory/scratch folder=/runs/a b'"));
  config.memory.scratch_folder = "/fast";  // the deck names it
  EXPECT_TRUE(ends_with(" --model '/runs/a b/final'"));
}

TEST(RunMessages, end_with_the_command_that_makes_a_model_that_was_not_written) {
  const TinyProject project;
  const ProgramResult run = project.train({"output/write models=never"});
  EXPECT_EQ(line_of(run.out, "evaluate "), "");
  EXPECT_EQ(project.run_line(line_of(run.out, "export   ")).exit_code, 0) << run.out;
  EXPECT_EQ(project.json({"evaluate", "deck.yaml", "--model", "run/final", "--json"}).at("theta_digest"),
            project.summary().at("theta_digest"));
  const ProgramResult blind = project.train({"data/dev=", "data/test=", "output/folder=blind"});
  EXPECT_EQ(blind.exit_code, 0) << blind.err;
  EXPECT_EQ(line_of(blind.out, "evaluate "), "");
}

TEST(RunMessages, name_each_expectation_of_the_deck_that_was_missed) {
  const EvaluationResult result{0.75, 0.5, 4, {}};
  using Lines = std::vector<std::string>;
  EXPECT_EQ(missed_expectations({}, result), Lines());
  EXPECT_EQ(missed_expectations({0.75, 0.5}, result), Lines());
  EXPECT_EQ(missed_expectations({0.8, 0.25}, result),
            (Lines{"expected/accuracy at least: 0.8, but the final accuracy is 0.7500",
                   "expected/final loss at most: 0.25, but the final loss is 0.5000"}));
  EXPECT_EQ(missed_expectations({std::nullopt, 0.5}, EvaluationResult{0, NAN, 4, {}}),
            Lines{"expected/final loss at most: 0.5, but the final loss is nan"});
  EXPECT_EQ(missed_expectations({0.8, std::nullopt}, std::nullopt),
            Lines{"expected/accuracy at least: 0.8, but nothing was evaluated"});

  const TinyProject project;
  const ProgramResult run = project.train({"expected/final loss at most=1e-9"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(line_of(run.out, "missed   ").find("expected/final loss at most: 1e-09, but the final loss is "), 0U)
      << run.out;
  EXPECT_EQ(project.summary().at("expected_reached"), false);
  EXPECT_EQ(line_of(project.train({"expected/final loss at most=1e9", "output/folder=good"}).out, "missed   "), "");
}

TEST(RunMessages, say_of_a_folder_to_share_in_that_it_changes_nothing_where_nothing_is_shared) {
  const TinyProject project;
  const std::string none = "parallel/shared memory folder=/dev/shm/none";  // which is not there
  const auto note = [&](const std::string& why) {
    return "note     parallel/shared memory folder: " + why + ", so that it changes nothing\n";
  };
  EXPECT_NE(project.train({none}).out.find(note("no ranks share parameters here")), std::string::npos);
  const ProgramResult off = project.train({none, "parallel/slices=off", "output/folder=off"});
  EXPECT_NE(off.out.find(note("parallel/slices is off")), std::string::npos) << off.out;
  EXPECT_EQ(off.out.find("no ranks share"), std::string::npos) << off.out;
  const ProgramResult validation =
      project.run({"validate", "deck.yaml", "--set", none, "--set", "parallel/slices=off"});
  EXPECT_NE(validation.out.find("parallel/slices is off, so that it changes nothing"), std::string::npos);
  EXPECT_EQ(project.train({"output/folder=without"}).out.find("shared memory folder"), std::string::npos);
}

TEST(ValidateMessages, say_how_long_the_run_is_and_how_often_it_is_evaluated) {
  const TinyProject project;
  const auto said = [&](const std::string& set) {
    return project
        .run({"validate", "deck.yaml", "--set", "zo/steps=50", "--set", "zo/learning rate=2e-5", "--set", set})
        .out;
  };
  const std::string run = "\nrun       50 steps, learning rate 2e-05";
  EXPECT_NE(said("output/evaluate every=auto").find(run + ", evaluated on dev every 10 steps\n"), std::string::npos);
  EXPECT_NE(said("output/evaluate every=0").find(run + ", evaluated on dev at its start and end\n"), std::string::npos);
  EXPECT_NE(said("data/dev=").find(run + "\n"), std::string::npos);
}

TEST(EvaluationMessages, say_what_is_evaluated_before_it_is) {
  const TinyProject project;
  const ProgramResult whole = project.run({"evaluate", "deck.yaml"});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(line_of(whole.out, "accuracy  ").find(" of 10)"), std::string::npos) << whole.out;

  // A model without answers: its evaluation ends at the first of them.
  std::string weights = text_of_file(project.path("model/model.safetensors"));
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(weights.data() + weights.size() - sizeof bad, &bad, sizeof bad);
  project.write("model/model.safetensors", weights);
  const ProgramResult result = project.run({"evaluate", "deck.yaml", "--set", "model/allow non-finite weights=true"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_EQ(result.out.find("model     LlamaForCausalLM"), 0U) << result.out;
  EXPECT_EQ(line_of(result.out, "set       "), "test.tsv, 10 of 10 rows");
  EXPECT_NE(line_of(result.out, "memory    ").find(", less a tenth)"), std::string::npos);  // the limit that bound
  EXPECT_NE(line_of(result.out, "compute   "), "");
  EXPECT_EQ(result.out.find("accuracy"), std::string::npos) << result.out;
}

TEST(EvaluationMessages, on_a_terminal_are_a_live_line) {
  const TinyProject project;
  const ProgramResult result =  // util-linux's script gives the program a terminal
      project.run({"evaluate", "deck.yaml"}, {.wrapper = {"sh", "-c", "exec script -qec \"$0 $*\" /dev/null"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::size_t live = result.out.find("\r\x1b[Kevaluated 0 of 10"), wiped = result.out.find("\r\x1b[Kaccuracy");
  EXPECT_NE(live, std::string::npos) << result.out;
  EXPECT_NE(wiped, std::string::npos) << result.out;
  EXPECT_LT(live, wiped);
}

}  // namespace
}  // namespace distzo2
