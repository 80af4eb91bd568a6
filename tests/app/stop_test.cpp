// SPDX-License-Identifier: BSD-3-Clause
// Signals, the time limit, and losses that are not finite or grow.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "app/training_loop.hpp"
#include "io/trajectory_file.hpp"
#include "tests/support/store_on_disk.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Stopped, resumable: exit code 75, a whole trajectory, no final model, and a line that says how to go on.
void expect_stopped(const TinyProject& project, const ProgramResult& result) {
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("--resume auto"), std::string::npos) << result.out;
  const Trajectory t = read_trajectory(project.path("run/trajectory.zoj"));
  EXPECT_FALSE(t.torn);
  EXPECT_GE(t.steps.size(), 1U);
  expect_each_step_once(project.metrics(), t.steps.size());
  EXPECT_FALSE(fs::exists(project.path("run/final")));
  EXPECT_FALSE(fs::exists(project.path("run/summary.json")));
}

TEST(Stop, signals_end_the_run_after_a_step_and_it_goes_on_to_the_same_bits) {
  const std::vector<std::string> sets{"zo/steps=400", "output/evaluate every=0"};
  const TinyProject whole;
  const json expected = whole.trained(sets);
  const TinyProject project;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    RunningProgram program(train_words("deck.yaml", sets, resume), project.here());
    wait_for_text(program, "tokens/s");
    program.send(signal);
    expect_stopped(project, program.wait());
  }
  expect_same_run(project.trained(sets, resume), expected);
  expect_each_step_once(project.metrics(), 400);
}

TEST(Stop, a_signal_ends_an_evaluation_and_it_is_made_on_resume) {
  std::string rows = "sentence\tlabel\n";
  for (int i = 0; i < 4000; ++i) {
    rows += "row " + std::to_string(i) + (i % 2 == 0 ? " even\t0\n" : " odd\t1\n");
  }
  const std::vector<std::string> sets{"data/test=dev.tsv", "data/dev=large.tsv", "output/log every=1"};
  const TinyProject whole;
  whole.write("large.tsv", rows);
  const json expected = whole.trained(sets);
  const TinyProject project;
  project.write("large.tsv", rows);
  for (const auto& [shown, steps] : {std::pair{"memory ", 0U}, {"step  5/12", 5U}, {"step 12/12", 12U}}) {
    RunningProgram program(train_words("deck.yaml", sets, resume), project.here());
    wait_for_text(program, shown);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    program.send(SIGTERM);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.exit_code, 75) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), steps);
    EXPECT_FALSE(fs::exists(project.path("run/summary.json")));
  }
  expect_same_run(project.trained(sets, resume), expected);
  const auto evaluations = [](const TinyProject& p) {
    std::vector<json> list = p.metrics();
    std::erase_if(list, [](const json& line) { return !line.contains("evaluation"); });
    return list;
  };
  EXPECT_EQ(evaluations(project), evaluations(whole));
}

/// Whether a thread of /proc has this signal blocked.
bool blocks(const fs::path& thread, int signal) {
  std::ifstream status(thread / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return ((std::stoull(line.substr(7), nullptr, 16) >> (signal - 1)) & 1U) != 0;
  return false;
}

TEST(Stop, signals_reach_the_main_thread_alone) {
  const TinyProject project;  // three threads, of which libraries may make some before main begins
  const std::vector<std::string> words = train_words("deck.yaml", {"zo/steps=100000", "output/evaluate every=0"});
  RunningProgram program(words, project.here({.environment = {"OMP_NUM_THREADS=3"},
                                              .wrapper = {"sh", "-c", "echo $$; exec \"$0\" \"$@\""}}));
  wait_for_text(program, "tokens/s");
  ASSERT_TRUE(program.running());
  const std::string pid = std::to_string(std::stoi(program.out()));
  std::size_t threads = 0;
  for (const fs::directory_entry& thread : fs::directory_iterator("/proc/" + pid + "/task")) {
    ++threads;
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP})
      EXPECT_EQ(blocks(thread.path(), signal), thread.path().filename() != pid) << thread.path() << " " << signal;
  }
  EXPECT_GE(threads, 3U);
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().exit_code, 75);
}

TEST(Stop, a_signal_while_loading_ends_the_run_before_its_first_step) {
  const TinyProject project;
  const std::vector<std::string> one_step{"zo/steps=3", "data/dev=", "data/test="};
  const auto stopped_at_start = [&](const std::vector<std::string>& more) {
    // What is blocked and pending where a program is started stays so: it has the signal before its first instruction.
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    RunningProgram program(train_words("deck.yaml", one_step, more), project.here());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    program.send(SIGTERM);
    return program.wait();
  };
  const std::string line = "stopped at the signal while loading: no step was taken";
  for (const auto& more : {std::vector<std::string>{}, resume})
    expect_one_line(stopped_at_start(more), 75, {line + "; the same command begins the run"});
  EXPECT_FALSE(fs::exists(project.path("run")));
  ASSERT_EQ(project.train({"zo/steps=3", "data/dev=", "data/test=", "checkpoint/time limit=0.001 s"}).exit_code, 75);
  const std::string trajectory = text_of_file(project.path("run/trajectory.zoj"));
  expect_one_line(stopped_at_start(resume), 75, {line + " after step 1; the same command goes on"});
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), trajectory);
  const TinyProject whole;
  expect_same_run(project.trained(one_step, resume), whole.trained(one_step));
}

class StopOnDisk : public StoreOnDisk {};

TEST_F(StopOnDisk, a_signal_ends_the_import_of_the_model_and_the_run_goes_on) {
  if (!can_preload) return;
  expect_one_line(project_.train(sets_, {}, with_fault("pwritev chunks.bin 2 term")), 75,
                  {"while loading: no step was taken; the same command with --resume auto goes on"});
  EXPECT_FALSE(fs::exists(project_.path("run/trajectory.zoj")));
  const json resumed = expect_going_on(whole_);
  EXPECT_LT(resumed.at("bytes_written"), whole_.at("bytes_written"));  // chunks that were imported are kept
}

TEST(Stop, a_time_limit_counts_from_the_start_of_each_process) {
  // It is over before the first step: each process does one.
  const std::vector<std::string> train_only{"zo/steps=3", "data/dev=", "data/test="};
  std::vector<std::string> sets = train_only;
  sets.emplace_back("checkpoint/time limit=0.001 s");
  const TinyProject project;
  for (std::size_t steps = 1; steps <= 3; ++steps) {
    const ProgramResult result = project.train(sets, resume);
    expect_stopped(project, result);
    EXPECT_NE(result.out.find("stopped  at the time limit after step " + std::to_string(steps)), std::string::npos)
        << result.out;
  }
  const json summary = project.trained(sets, resume);
  const TinyProject whole;
  expect_same_run(summary, whole.trained(train_only));
}

TEST(Stop, a_time_limit_ends_an_evaluation) {
  const TinyProject project;
  const ProgramResult result = project.train({"checkpoint/time limit=0.001 s"});
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_NE(result.out.find("stopped  at the time limit after step 0"), std::string::npos) << result.out;
  EXPECT_EQ(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 0U);
  const TinyProject whole;
  expect_same_run(project.trained({}, resume), whole.trained());
}

TEST(Stop, ends_the_first_evaluation_on_a_set_that_a_resume_adds) {
  const std::string limit = "checkpoint/time limit=0.001 s";  // over before the first step: each process does one
  const TinyProject project;
  ASSERT_EQ(project.train({"zo/steps=3", "data/dev=", "data/test=", limit}).exit_code, 75);
  const ProgramResult stopped = project.train({"zo/steps=3", limit}, resume);
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_NE(stopped.out.find("stopped  at the time limit after step 1\n"), std::string::npos) << stopped.out;
  EXPECT_EQ(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 1U);  // none more
  const TinyProject whole;
  expect_same_run(project.trained({"zo/steps=3"}, resume), whole.trained({"zo/steps=3"}));
}

TEST(Stop, a_second_interrupt_ends_the_program_at_once) {
  const TinyProject project;
  const std::vector<std::string> sets{"zo/batch=3000", "zo/directions=8"};  // a step takes seconds
  RunningProgram program(train_words("deck.yaml", sets), project.here());
  wait_for_text(program, "memory ");
  program.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(program.running());  // the step goes on
  program.send(SIGINT);
  const auto sent = std::chrono::steady_clock::now();
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(2));
  EXPECT_EQ(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 0U);
}

TEST(Stop, a_hang_up_between_two_interrupts_does_not_hide_the_first) {
  const TinyProject project;
  RunningProgram program(train_words("deck.yaml", {"zo/batch=3000", "zo/directions=8"}), project.here());
  wait_for_text(program, "memory ");
  for (const int signal : {SIGINT, SIGHUP, SIGINT}) {
    EXPECT_TRUE(program.running());
    program.send(signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(program.wait().signal, SIGINT);
}

TEST(Stop, signals_that_were_ignored_stay_so) {
  for (const auto& [name, signal] : {std::pair{"INT", SIGINT}, {"HUP", SIGHUP}}) {
    const TinyProject project;
    ProgramOptions options = project.here();
    options.wrapper = {"sh", "-c", std::string("trap '' ") + name + "; exec \"$0\" \"$@\""};
    RunningProgram program(train_words("deck.yaml", {"zo/steps=200", "output/evaluate every=0"}), options);
    wait_for_text(program, "tokens/s");
    program.send(signal);
    EXPECT_EQ(program.wait().exit_code, 0) << name;
  }
}

/// A model with logits of 1e10 or so: its first step is finite and so large that the later ones are not.
class ExplodingProject : public TinyProject {
public:
  ExplodingProject() {
    std::string weights = text_of_file(path("model/model.safetensors"));
    for (std::size_t at = weights.size() - 32 * sizeof(float); at < weights.size(); at += sizeof(float)) {
      float value = 0;  // of the final norm, the last tensor of the file
      std::memcpy(&value, weights.data() + at, sizeof value);
      value *= 1e10F;
      std::memcpy(weights.data() + at, &value, sizeof value);
    }
    write("model/model.safetensors", weights);
  }
};

TEST(NonFinite, skip_records_a_step_that_changes_nothing_and_goes_on) {
  const ExplodingProject project;
  const std::vector<std::string> sets = {"zo/learning rate=1", "zo/steps=6", "zo/weight decay=0.1"};
  EXPECT_EQ(project.train(sets).exit_code, 4);  // it ends without answers, and with a summary
  const json summary = project.summary();
  const json trajectory = project.json({"inspect", "run", "--json"});
  ASSERT_EQ(trajectory.at("steps").size(), 6U);
  int skipped = 0;
  const auto digest_at = [&](std::size_t t) {
    const std::string step = std::to_string(t);
    return project.json({"export", "--trajectory", "run", "--step", step, "--output", "theta" + step, "--json"})
        .at("theta_digest");
  };
  for (std::size_t t = 0; t < 6; ++t) {
    const json& step = trajectory.at("steps").at(t);
    const bool finite = std::ranges::none_of(step.at("losses"), [](const json& l) { return l.is_null(); });
    EXPECT_EQ(digest_at(t) == digest_at(t + 1), !finite) << step;
    fs::remove_all(project.path("theta" + std::to_string(t)));
    fs::remove_all(project.path("theta" + std::to_string(t + 1)));
    if (!finite) {
      EXPECT_EQ(step.at("c"), json({0.0}));
      EXPECT_EQ(step.at("wd"), 0.0);
      ++skipped;
    }
  }
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, 6);
  const std::vector<json> metrics = project.metrics();  // every line is JSON: what is not a number is null
  expect_each_step_once(metrics, 6);
  EXPECT_TRUE(std::ranges::any_of(metrics, [](const json& m) { return m.contains("loss") && m.at("loss").is_null(); }));

  fs::remove(project.path("run/summary.json"));
  const fs::path file = project.path("run/trajectory.zoj");
  fs::resize_file(file, fs::file_size(file) - 64 * 3);
  EXPECT_EQ(project.train(sets, resume).exit_code, 4);
  expect_same_run(project.summary(), summary);
  EXPECT_EQ(project.metrics().size(), metrics.size());
}

TEST(NonFinite, stop_ends_the_run_before_the_step_is_recorded) {
  const ExplodingProject project;
  const std::vector<std::string> sets{"zo/learning rate=1", "zo/steps=6", "zo/non-finite=stop"};
  const ProgramResult result = project.train(sets);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.err.find("distzo2: step "), 0U) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
  EXPECT_NE(result.err.find("zo/learning rate"), std::string::npos);
  const Trajectory t = read_trajectory(project.path("run/trajectory.zoj"));
  EXPECT_GT(t.steps.size(), 0U);
  EXPECT_LT(t.steps.size(), 6U);
  EXPECT_NE(result.err.find("step " + std::to_string(t.steps.size() + 1) + ": a loss is not finite"), std::string::npos)
      << result.err;
  EXPECT_EQ(project.train(sets, resume).exit_code, 4);  // again at the same step
}

TEST(NonFinite, an_update_that_overflows_is_not_called_a_loss) {
  StepRecord record;
  record.losses = {1e300, 2e299};
  record.g_raw = {4e302};
  EXPECT_EQ(non_finite_part(record),
            "the losses 1e+300, 2e+299 are finite, but the update's factor made of them is not (g = 4e+302)");
  record.losses[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(non_finite_part(record), "a loss is not finite (1e+300, inf)");
}

TEST(ZeroGradient, in_most_of_twenty_steps_is_said_once) {
  const TinyProject project;
  const auto warnings = [](const ProgramResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = result.out.find("g was exactly 0", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  };
  // So small a perturbation changes no weight of usual size, and no sum.
  const std::vector<std::string> sets{"zo/epsilon=1e-12", "zo/learning rate=0", "output/evaluate every=0"};
  const auto with_steps = [&](const char* steps) {
    std::vector<std::string> all = sets;
    all.emplace_back(std::string("zo/steps=") + steps);
    return all;
  };
  EXPECT_EQ(warnings(project.train(with_steps("14"), resume)), 0U);
  EXPECT_EQ(warnings(project.train(with_steps("50"), resume)), 1U);
  EXPECT_EQ(warnings(project.train(with_steps("90"), resume)), 0U);  // the run has had it
}

TEST(Fp16, a_norm_beyond_its_range_leaves_a_whole_run_without_a_model) {
  const ExplodingProject project;
  const ProgramResult result = project.train({"precision/storage=fp16", "zo/learning rate=0"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.err.find("distzo2: "), 0U) << result.err;
  EXPECT_NE(result.err.find("final could not be written: tensor \"model.norm.weight\""), std::string::npos)
      << result.err;
  const std::size_t said = result.out.find("warning  final/ and best/ cannot be written as it stands");
  EXPECT_LT(said, result.out.find("first step after")) << result.out;
  const json summary = project.summary();
  EXPECT_EQ(summary.at("steps"), 12);
  EXPECT_NE(summary.at("models_not_written"), nullptr);
  EXPECT_EQ(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 12U);
  EXPECT_FALSE(fs::exists(project.path("run/final")));
  project.trained({"precision/storage=fp16", "zo/learning rate=0", "output/write models=never", "output/folder=none"});
}

TEST(Diverged, twenty_steps_without_a_finite_loss_end_the_run) {
  const ExplodingProject project;
  const ProgramResult result = project.train({"zo/learning rate=1", "zo/steps=100"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(result.err.find("distzo2: step "), 0U) << result.err;
  EXPECT_LT(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 40U);
  EXPECT_EQ(project.train({"zo/learning rate=1", "zo/steps=60", "zo/diverged factor=0", "output/folder=on"}).exit_code,
            4);
  EXPECT_EQ(project.summary("on").at("steps"), 60);  // to its last step
}

TEST(Diverged, a_mean_loss_beyond_the_factor_ends_the_run) {
  const TinyProject project;
  const std::vector<std::string> sets{"zo/steps=2000", "zo/learning rate=2e-2", "zo/diverged factor=1.5",
                                      "output/evaluate every=0"};
  const ProgramResult result = project.train(sets);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("zo/diverged factor"), std::string::npos) << result.err;
  const std::vector<StepRecord> steps = read_trajectory(project.path("run/trajectory.zoj")).steps;
  ASSERT_GE(steps.size(), 40U);
  const auto mean = [&](std::size_t first) {
    double sum = 0;
    for (std::size_t t = first; t < first + 20; ++t) {
      sum += (steps[t].losses[0] + steps[t].losses[1]) / 2;
    }
    return sum / 20;
  };
  EXPECT_GT(mean(steps.size() - 20), 1.5 * mean(0));
  if (steps.size() > 40) {
    EXPECT_LE(mean(steps.size() - 21), 1.5 * mean(0));
  }
  EXPECT_EQ(project.train(sets, resume).exit_code, 4);  // a function of the records: no step is done again
  EXPECT_EQ(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), steps.size());
}

}  // namespace
}  // namespace distzo2
