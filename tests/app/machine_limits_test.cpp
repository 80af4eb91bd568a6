// SPDX-License-Identifier: BSD-3-Clause
// What the machine and its limits do to a run: threads, memory, file sizes, closed outputs, signals.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "app/threads.hpp"
#include "io/output_file.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// The program started by a shell after this command.
ProgramOptions after(const std::string& command) {
  return {.wrapper = {"sh", "-c", command + "; exec \"$0\" \"$@\""}};
}

TEST(Threads, are_the_first_of_the_variables_numbers) {
  EXPECT_EQ(threads_in("1"), 1);
  EXPECT_EQ(threads_in(" 12 "), 12);
  EXPECT_EQ(threads_in("4,2"), 4);
  EXPECT_EQ(threads_in("512"), 512);
  for (const char* bad : {"", "0", "-1", "513", "99999999999999999999", "abc", "4x", "4,", "4,0", "2 3"}) {
    EXPECT_EQ(threads_in(bad), 0) << bad;
  }
}

TEST(Threads, beyond_what_there_can_be_are_refused_and_nothing_else_is_printed) {
  const TinyProject project;
  for (const char* value : {"0", "abc", "4096", "100000000000000000000"}) {
    const ProgramOptions options{.environment = {std::string("OMP_NUM_THREADS=") + value}};
    for (const char* command : {"train", "validate", "evaluate"}) {
      expect_one_line(project.run({command, "deck.yaml"}, options), 2, {"OMP_NUM_THREADS", value, "512"});
    }
    EXPECT_EQ(project.run({"--version"}, options).err, "");
    project.trained({"parallel/threads=2", "output/folder=" + std::string("run") + value}, {}, options);  // not asked
  }
}

TEST(Threads, of_a_run_are_the_decks_or_the_variables) {
  const TinyProject project;
  const auto threads = [&](const std::vector<std::string>& words, const std::string& variable) {
    return project.json(words, {.environment = {"OMP_NUM_THREADS=" + variable}}).at("machine").at("threads");
  };
  const std::vector<std::string> evaluate{"evaluate", "deck.yaml", "--json"};
  EXPECT_EQ(threads(evaluate, "3"), 3);
  EXPECT_EQ(threads(evaluate, "2,1"), 2);
  EXPECT_GE(threads(evaluate, ""), 1);  // as if it were not set
  std::vector<std::string> with_key = evaluate;
  with_key.insert(with_key.end(), {"--set", "parallel/threads=2"});
  EXPECT_EQ(threads(with_key, "3"), 2);
}

#ifndef __SANITIZE_ADDRESS__  // its shadow memory fits in no such limit
TEST(Memory, that_is_not_there_ends_in_a_message) {
  const TinyProject project;
  ProgramOptions options = after("ulimit -v 200000");
  options.time_limit_s = 20;
  const ProgramResult one = project.run({"train", "deck.yaml"}, options);
  expect_one_line(one, 1, {"memory", "ulimit -v", "one thread needs"});
  EXPECT_EQ(one.err.find("fewer"), std::string::npos) << one.err;
  options.environment = {"OMP_NUM_THREADS=2"};
  expect_one_line(project.run({"train", "deck.yaml"}, options), 1, {"memory", "ulimit -v", "fewer threads"});
  EXPECT_FALSE(fs::exists(project.path("run")));
}
#endif

TEST(Output, beyond_the_limit_of_file_sizes_is_an_error) {
  const TinyProject project;
  expect_one_line(project.train({"zo/steps=2000", "output/evaluate every=0"}, {}, after("ulimit -f 60")), 3,
                  {"run/"});  // blocks of 512 bytes
}

TEST(Output, of_other_commands_beyond_the_limit_is_an_error_that_leaves_nothing) {
  const TinyProject project;
  project.trained();
  const ProgramOptions small{.wrapper = {"sh", "-c", "ulimit -f 1; exec \"$0\" \"$@\" > /dev/null"}};
  expect_one_line(project.run({"evaluate", "deck.yaml", "--predictions", "p.jsonl"}, small), 3, {"p.jsonl"});
  expect_one_line(project.run({"export", "--trajectory", "run", "--output", "x"}, small), 3, {"x"});
  for (const fs::directory_entry& entry : fs::directory_iterator(project.path()))
    for (const char* target : {"p.jsonl", "x"})
      EXPECT_FALSE(entry.path().filename() == target || is_made_beside(target, entry.path().filename().string()))
          << entry.path();
}

TEST(Output, that_nobody_reads_any_more_is_no_error) {
  const TinyProject project;
  project.write("closed.sh", "\"$@\" | true\nexit ${PIPESTATUS[0]}\n");
  project.write("head.sh", "\"$@\" | head -n 1\nexit ${PIPESTATUS[0]}\n");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"evaluate", "deck.yaml"}, {"train", "deck.yaml"}, {"inspect", "run", "--json"}, {"deck-docs"}, {"--help"}})
    for (const char* script : {"closed.sh", "head.sh"}) {
      SCOPED_TRACE(words.front() + " " + script);
      fs::remove_all(words.front() == "train" ? project.path("run") : project.path("none"));
      const ProgramResult result = project.run(words, {.wrapper = {"bash", script}});
      EXPECT_EQ(result.exit_code, 0);
      EXPECT_EQ(result.err, "");
      EXPECT_TRUE(words.front() == "evaluate" || fs::exists(project.path("run/summary.json")));  // a run goes on
    }
}

ProgramResult signalled(const TinyProject& project, const std::vector<int>& signals,
                        const ProgramOptions& options = {}) {
  const std::vector<std::string> sets{"zo/steps=1000000", "output/evaluate every=0"};
  RunningProgram program(train_words("deck.yaml", sets), project.here(options));
  wait_for_text(program, "tokens/s");
  for (const int signal : signals) {
    program.send(signal);
  }
  return program.wait();
}

TEST(Signals, of_a_closed_terminal_stop_a_run_like_a_request) {
  EXPECT_EQ(signalled(TinyProject(), {SIGHUP}).exit_code, 75);
  EXPECT_EQ(signalled(TinyProject(), {SIGHUP, SIGTERM}).exit_code, 75);
}

}  // namespace
}  // namespace distzo2
