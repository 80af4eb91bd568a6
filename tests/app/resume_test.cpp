// SPDX-License-Identifier: BSD-3-Clause
// A run that was interrupted goes on to the bits of one that was not.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "app/run_folder.hpp"
#include "app/run_lock.hpp"
#include "core/error.hpp"
#include "io/trajectory_file.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::vector<std::string> long_run{"zo/steps=300", "output/evaluate every=70"};

/// metrics.jsonl without what the clock says; a step that was recorded but not yet written there has no times.
std::vector<json> without_times(std::vector<json> metrics) {
  for (json& line : metrics) {
    line.erase("seconds");
    line.erase("tokens");
  }
  return metrics;
}

/// Cuts so many bytes off the trajectory, and takes away what is written after the last step: what a process that died
/// leaves.
void cut_back(const TinyProject& project, std::uintmax_t bytes) {
  const fs::path file = project.path("run/trajectory.zoj");
  fs::resize_file(file, fs::file_size(file) - bytes);
  fs::remove(project.path("run/summary.json"));
  fs::remove_all(project.path("run/final"));
}

std::uintmax_t record_bytes(const TinyProject& project) {
  const Trajectory t = read_trajectory(project.path("run/trajectory.zoj"));
  const std::uint64_t q = t.steps.front().c.size();
  return 28 + 20 * q + 8 * t.steps.front().losses.size();
}

TEST(Resume, after_kills_at_any_step_gives_the_digest_of_an_uninterrupted_run) {
  const TinyProject whole;
  const json expected = whole.trained(long_run);
  const TinyProject project;
  const std::vector<std::string> words = train_words("deck.yaml", long_run, resume);
  for (const std::uintmax_t records : {1U, 40U, 75U, 150U, 290U}) {
    EXPECT_TRUE(kill_at_bytes(project, words, 600 + 64 * records));
  }
  expect_same_run(project.trained(long_run, resume), expected);
  expect_each_step_once(project.metrics(), 300);
  EXPECT_EQ(without_times(project.metrics()), without_times(whole.metrics()));
}

TEST(Resume, after_a_kill_at_any_moment_of_the_start_begins_at_step_0) {
  const TinyProject whole, project;
  const json expected = whole.trained();
  for (const int milliseconds : {0, 5, 15, 30, 50, 80}) {
    fs::remove_all(project.path("run"));
    {
      RunningProgram program(train_words("deck.yaml", {}, resume), project.here());
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      program.send(SIGKILL);
      program.wait();
    }
    expect_same_run(project.trained({}, resume), expected);
    expect_each_step_once(project.metrics(), 12);
  }
}

TEST(Resume, after_a_kill_in_the_final_export_writes_the_model) {
  const TinyProject project;
  const json expected = project.trained();
  const std::string model = text_of_file(project.path("run/final/model.safetensors"));
  const std::vector<json> metrics = project.metrics();
  for (const std::uintmax_t records : {0U, 1U}) {  // with and without the record of theta's last digest
    cut_back(project, 64 * records);
    project.write("run/.final.partial-17-1/model.safetensors", "half of it");
    project.write("run/final.partial", "the user's");
    expect_same_run(project.trained({}, resume), expected);
    EXPECT_EQ(text_of_file(project.path("run/final/model.safetensors")), model);
    EXPECT_FALSE(fs::exists(project.path("run/.final.partial-17-1")));
    EXPECT_EQ(text_of_file(project.path("run/final.partial")), "the user's");
    EXPECT_EQ(project.metrics(), metrics);
  }
}

TEST(Resume, writes_a_best_model_that_could_not_be_written) {
  const TinyProject project;
  const std::vector<std::string> sets{"zo/learning rate=3e-4", "output/evaluate every=1", "zo/steps=40"};
  project.trained(sets);
  const std::string best = text_of_file(project.path("run/best/model.safetensors"));
  ASSERT_FALSE(best.empty());
  const std::vector<json> metrics = without_times(project.metrics());
  fs::remove_all(project.path("run"));
  const ProgramOptions small_files{.wrapper = {"sh", "-c", "ulimit -f 40; exec \"$0\" \"$@\""}};  // blocks of 512 bytes
  expect_one_line(project.train(sets, {}, small_files), 3, {"model.safetensors"});
  EXPECT_FALSE(fs::exists(project.path("run/best")));
  project.trained(sets, resume);
  EXPECT_TRUE(text_of_file(project.path("run/best/model.safetensors")) == best);
  EXPECT_EQ(without_times(project.metrics()), metrics);
}

TEST(Resume, cuts_a_torn_record_off) {
  const TinyProject project;
  const json expected = project.trained();
  for (const std::uintmax_t bytes : {1U, 63U, 64U + 1, 64U * 5 + 20}) {
    cut_back(project, bytes);
    expect_same_run(project.trained({}, resume), expected);
    expect_each_step_once(project.metrics(), 12);
  }
}

TEST(Resume, refuses_a_trajectory_with_a_changed_bit_and_goes_on_once_it_is_cut_there) {
  const TinyProject project;
  const json expected = project.trained();
  cut_back(project, 64);
  std::string bytes = text_of_file(project.path("run/trajectory.zoj"));
  bytes[bytes.size() - 64 * 9 + 20] = static_cast<char>(bytes[bytes.size() - 64 * 9 + 20] ^ 4);  // in step 3 of 0 to 11
  const std::uintmax_t whole = bytes.size() - 64 * 9;  // header and steps 0 to 2
  project.write("run/trajectory.zoj", bytes);
  const ProgramResult result = project.train({}, resume);
  expect_one_line(result, 3,
                  {project.path("run/trajectory.zoj").string() + ": record 4: its checksum does not fit",
                   "the 3 steps before it", "cut this one to its first " + std::to_string(whole) + " bytes"});
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), bytes);
  fs::resize_file(project.path("run/trajectory.zoj"), whole);  // as it says
  expect_same_run(project.trained({}, resume), expected);
}

TEST(Resume, refuses_a_deck_with_other_mathematics_naming_the_key) {
  const TinyProject project;
  const json expected = project.trained();
  cut_back(project, 64 * 5);
  const std::string before = text_of_file(project.path("run/trajectory.zoj"));
  for (const auto& [set, named] : {std::pair{"zo/learning rate=2e-3", "zo/learning rate: 0.002 was 0.001"},
                                   {"zo/seed=0", "zo/seed: 0 was 7"},
                                   {"zo/directions=2", "zo/directions: 2 was 1"},
                                   {"precision/storage=bf16", "precision/storage: bf16 was fp32"},
                                   {"zo/clip=3", "zo/clip: 3 was 0"},
                                   {"data/train examples=30", "data/train examples: 30 was all"}}) {
    const ProgramResult result = project.train({set}, resume);
    EXPECT_EQ(result.exit_code, 2) << set;
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  }
  fs::copy_file(project.path("train.tsv"), project.path("kept.tsv"));
  project.write("train.tsv", text_of_file(project.path("kept.tsv")) + "one more\t1\n");
  const ProgramResult data = project.train({}, resume);
  EXPECT_EQ(data.exit_code, 2);
  EXPECT_NE(data.err.find("the training examples are not those"), std::string::npos) << data.err;
  fs::rename(project.path("kept.tsv"), project.path("train.tsv"));
  const TinyProject other("llama_untied");
  const ProgramResult model = project.train({"model/folder=" + other.path("model").string()}, resume);
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_NE(model.err.find("other weights"), std::string::npos) << model.err;

  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), before);
  // What does not enter the mathematics may change: where the run's files lie, and how it is logged.
  fs::rename(project.path("model"), project.path("moved"));
  expect_same_run(
      project.trained(
          {"model/folder=moved", "output/log every=1", "parallel/threads=1", "checkpoint/trajectory sync=0 s"}, resume),
      expected);
  const json exported = project.json({"export", "--trajectory", "run", "--output", "theta", "--json"});
  EXPECT_EQ(exported.at("theta_digest"), expected.at("theta_digest"));  // the run's deck names the model's new place
}

TEST(Resume, reports_the_speed_of_all_steps_whichever_process_did_them) {
  const TinyProject project;
  project.trained({"zo/steps=12"});
  std::vector<json> metrics = project.metrics();
  std::string text;
  for (json& line : metrics) {
    if (!line.contains("evaluation")) {
      line["seconds"] = 2.0;
      line["tokens"] = 100;
    }
    text += line.dump() + "\n";
  }
  project.write("run/metrics.jsonl", text);
  const json summary = project.trained({"zo/steps=14"}, resume);
  EXPECT_EQ(summary.at("seconds_per_step"), 2.0);
  EXPECT_EQ(summary.at("tokens_per_second"), 50.0);
}

TEST(Resume, of_a_finished_run_says_so_and_changes_nothing) {
  const TinyProject project;
  project.trained();
  const auto state = [&] {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(project.path("run"))) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path().string() + text_of_file(entry.path()));
      }
    }
    return files;
  };
  const auto before = state();
  const ProgramResult result = project.train({}, resume);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("is finished"), std::string::npos) << result.out;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(state() == before);
}

TEST(Resume, of_a_finished_run_with_other_mathematics_is_refused) {
  const TinyProject project;
  project.trained();
  const ProgramResult result = project.train({"zo/epsilon=1e-2"}, resume);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("zo/epsilon: 0.01 was 0.001"), std::string::npos) << result.err;
  EXPECT_EQ(result.out.find("is finished"), std::string::npos) << result.out;
}

TEST(Resume, with_more_steps_goes_on_where_the_learning_rate_is_constant) {
  const TinyProject whole;
  const json expected = whole.trained({"zo/steps=20"});
  const TinyProject project;
  project.trained();
  const ProgramResult fewer = project.train({"zo/steps=9"}, resume);  // it has these steps
  EXPECT_EQ(fewer.exit_code, 0);
  EXPECT_NE(fewer.out.find("is finished"), std::string::npos) << fewer.out;
  EXPECT_EQ(project.train({"zo/steps=20", "zo/schedule=linear"}, resume).exit_code, 2);
  expect_same_run(project.trained({"zo/steps=20"}, resume), expected);
  expect_each_step_once(project.metrics(), 20);
  const TinyProject linear;
  linear.trained({"zo/schedule=linear"});
  const ProgramResult refused = linear.train({"zo/steps=20", "zo/schedule=linear"}, resume);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("zo/steps: 20 was 12"), std::string::npos) << refused.err;
}

TEST(Resume, with_more_steps_takes_the_summary_away_until_they_are_done) {
  const TinyProject project;
  const std::vector<std::string> sets{"data/dev=", "data/test="};
  project.trained(sets);
  EXPECT_EQ(project.train(with(sets, {"zo/steps=20", "zo/epsilon=1e-2"}), resume).exit_code, 2);
  EXPECT_EQ(project.summary().at("steps"), 12);  // a resume that is refused changes nothing
  // Its time is over before the first step, and so it does one.
  EXPECT_EQ(project.train(with(sets, {"zo/steps=20", "checkpoint/time limit=0.001 s"}), resume).exit_code, 75);
  EXPECT_FALSE(fs::exists(project.path("run/summary.json")));
  EXPECT_EQ(project.json({"inspect", "run", "--json"}).at("run").at("status"), "stopped");
  EXPECT_EQ(project.trained(with(sets, {"zo/steps=20"}), resume).at("steps"), 20);
  EXPECT_EQ(project.json({"inspect", "run", "--json"}).at("run").at("status"), "finished");
}

TEST(Resume, evaluates_the_base_model_on_a_set_that_it_adds) {
  const TinyProject project;
  project.trained({"data/dev="});
  project.trained({"zo/steps=14"}, resume);
  const std::vector<json> metrics = project.metrics();
  EXPECT_TRUE(std::ranges::any_of(metrics, [](const json& line) {
    return line.at("step") == 0 && line.value("/evaluation/set"_json_pointer, "") == "dev";
  }));
}

TEST(Resume, takes_no_summary_of_other_steps_for_an_end) {
  const TinyProject project;
  const json expected = project.trained();
  const std::string summary = text_of_file(project.path("run/summary.json"));
  cut_back(project, 64 * 3);
  project.write("run/summary.json", summary);  // as where the disk lost records alone
  const ProgramResult fewer = project.train({"zo/steps=9"}, resume);
  EXPECT_EQ(fewer.out.find("is finished"), std::string::npos) << fewer.out;
  EXPECT_EQ(project.json({"inspect", "run", "--json"}).at("run").at("status"), "stopped");
  expect_same_run(project.trained({}, resume), expected);
}

TEST(Resume, with_fewer_steps_than_were_done_is_refused) {
  const TinyProject project;
  const json expected = project.trained();
  cut_back(project, 64);
  const std::string train = text_of_file(project.path("train.tsv"));
  project.write("train.tsv", "");  // it is refused before data are read
  const ProgramResult result = project.train({"zo/steps=9"}, resume);
  project.write("train.tsv", train);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("zo/steps: 9"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("12"), std::string::npos) << result.err;
  expect_same_run(project.trained({}, resume), expected);
}

TEST(Resume, without_a_run_starts_one) {
  const TinyProject project;
  const json expected = project.trained();
  fs::remove_all(project.path("run"));
  expect_same_run(project.trained({}, resume), expected);
}

TEST(Resume, without_a_folder_in_the_deck_takes_the_newest_run_of_this_deck) {
  const TinyProject project;
  std::string deck = text_of_file(project.path("deck.yaml"));
  deck.erase(deck.find("  folder: run\n"), 14);
  project.write("deck.yaml", deck);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(project.train().exit_code, 0);
  }
  const json expected = project.summary("runs/deck-001");
  expect_same_run(project.summary("runs/deck-002"), expected);
  fs::create_directories(project.path("runs/deck-0x9"));
  fs::create_directories(project.path("runs/other-777"));
  fs::remove(project.path("runs/deck-002/summary.json"));
  const fs::path file = project.path("runs/deck-002/trajectory.zoj");
  fs::resize_file(file, fs::file_size(file) - 64 * 4);
  EXPECT_EQ(project.train({}, resume).exit_code, 0);
  expect_same_run(project.summary("runs/deck-002"), expected);
  EXPECT_FALSE(fs::exists(project.path("runs/deck-003")));
}

TEST(Resume, gives_equal_bits_for_every_form_of_the_method) {
  const std::vector<std::vector<std::string>> forms{
      {"zo/directions=3", "zo/difference=forward", "zo/objective=language model", "zo/weight decay=0.5", "zo/warm-up=4",
       "zo/schedule=cosine"},
      {"zo/clip=1", "zo/kind=rademacher", "zo/steps=30"},
      {"precision/storage=bf16", "precision/round every=5", "zo/schedule=linear"},
      {"precision/storage=fp16", "precision/compute=bf16", "zo/directions=2", "precision/rounding=nearest"},
      {"zo/batch=70", "zo/directions=2"}};  // more than an epoch a step
  for (const auto& form : forms) {
    SCOPED_TRACE(form.front());
    const TinyProject project("opt");
    const json expected = project.trained(form);
    for (const std::uintmax_t records : {1U, 4U, 9U}) {
      cut_back(project, record_bytes(project) * records - 3);
      expect_same_run(project.trained(form, resume), expected);
    }
  }
}

TEST(Resume, waits_for_no_other_process_in_the_folder_but_refuses) {
  const TinyProject project;
  RunningProgram first(train_words("deck.yaml", {"zo/steps=100000"}, {}), project.here());
  while (first.running() && size_of(project.path("run/trajectory.zoj")) < 1000) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const ProgramResult second = project.train({"zo/steps=100000"}, resume);
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_NE(second.err.find("another process"), std::string::npos) << second.err;
  first.send(SIGTERM);
  EXPECT_EQ(first.wait().exit_code, 75);
}

TEST(Resume, of_a_folder_that_cannot_be_locked_says_so) {
  const TemporaryFolder folder;
  EXPECT_EQ(RunLock(RunFolder{folder.path()}).problem(), "");
  const std::string problem = RunLock(RunFolder{folder.path() / "missing"}).problem();
  EXPECT_NE(problem.find("missing: cannot be locked (No such file or directory)"), std::string::npos) << problem;
}

TEST(Resume, is_not_kept_from_its_lock_by_those_who_look_whether_there_is_one) {
  const TemporaryFolder path;
  const RunFolder folder{path.path()};
  EXPECT_FALSE(is_worked_on(folder));
  EXPECT_FALSE(fs::exists(folder.lock()));  // to look leaves nothing behind
  std::atomic<bool> done = false;
  std::thread looking([&] {
    while (!done) is_worked_on(folder);
  });
  for (int i = 0; i < 20000; ++i) {
    try {
      const RunLock lock(folder);
      EXPECT_EQ(lock.problem(), "");
      EXPECT_TRUE(is_worked_on(folder));
      EXPECT_THROW(RunLock{folder}, Error);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      break;
    }
  }
  done = true;
  looking.join();
  EXPECT_FALSE(is_worked_on(folder));
}

TEST(Resume, goes_on_after_a_disk_that_was_full) {
  const TinyProject project;
  const json expected = project.trained(with(long_run, {"output/write models=never"}));
  fs::remove_all(project.path("run"));
  // Files may have 20 blocks of 512 bytes; the signal that the kernel sends for more is ignored, so that writing fails.
  const ProgramResult full = project.train(with(long_run, {"output/write models=never"}), {},
                                           {.wrapper = {"sh", "-c", "trap '' XFSZ; ulimit -f 20; exec \"$0\" \"$@\""}});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_EQ(full.err.find("distzo2: "), 0U) << full.err;
  EXPECT_EQ(std::count(full.err.begin(), full.err.end(), '\n'), 1) << full.err;
  EXPECT_NE(full.err.find((project.path("run") / "").string()), std::string::npos) << full.err;
  expect_same_run(project.trained(with(long_run, {"output/write models=never"}), resume), expected);
  expect_each_step_once(project.metrics(), 300);
}

}  // namespace
}  // namespace distzo2
