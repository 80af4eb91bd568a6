// SPDX-License-Identifier: BSD-3-Clause
// A rank that fails, dies, stops or differs ends the job on all ranks, with one message and no process left.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "io/trajectory_file.hpp"
#include "tests/ranks/deep_project.hpp"
#include "tests/support/on_ranks.hpp"
#include "tests/support/store_on_disk.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

const std::vector<std::string> long_run{"zo/steps=1000000", "output/evaluate every=0", "output/log every=1"};

/// Ranks 0 and 2 run the project, rank 1 another one.
std::string elsewhere(const TinyProject& other) {
  return on_rank(1, "cd '" + other.path().string() + "'");
}

std::size_t lines_of_ours(const ProgramResult& result) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = result.err.find("distzo2: ", at)) != std::string::npos; ++at) ++count;
  return count;
}

/// One line of the program's own, with these parts, whatever the launcher adds.
void expect_one_message(const ProgramResult& result, int exit_code, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(lines_of_ours(result), 1U) << result.err;
  for (const std::string& part : parts)
    EXPECT_NE(result.err.find(part), std::string::npos) << "\"" << part << "\" is not in: " << result.err;
}

void wait_for_steps(RunningProgram& program, const TinyProject& project) {
  while (program.running() && size_of(project.path("run/trajectory.zoj")) < 2000)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(RanksFailure, an_unreadable_model_on_one_rank_ends_all) {
  const TinyProject project, other;
  fs::resize_file(other.path("model/model.safetensors"), fs::file_size(other.path("model/model.safetensors")) - 100);
  RunningProgram program(train_words("deck.yaml", {}), project.here(on_ranks(3, elsewhere(other))));
  const std::vector<pid_t> pids = pids_of_ranks(program, 3);
  expect_one_message(program.wait(), 3, {"distzo2: rank 1 on ", "model.safetensors"});
  expect_gone(pids);
}

TEST(RanksFailure, another_deck_model_or_data_on_one_rank_is_named) {
  const TinyProject project;
  {
    const TinyProject other;
    std::string deck = text_of_file(other.path("deck.yaml"));
    deck.replace(deck.find("epsilon: 1e-3"), 13, "epsilon: 1e-2");
    other.write("deck.yaml", deck);
    const ProgramResult result = project.train({}, {}, on_ranks(3, elsewhere(other)));
    expect_one_message(result, 5, {"distzo2: rank 1 on ", "zo/epsilon: 0.01, rank 0 has 0.001"});
  }
  {
    const TinyProject other;
    std::string rows = text_of_file(other.path("train.tsv"));
    rows.replace(rows.find("row 3 "), 6, "now 3 ");
    other.write("train.tsv", rows);
    const ProgramResult result = project.train({}, {}, on_ranks(3, elsewhere(other)));
    expect_one_message(result, 5, {"distzo2: rank 1 on ", "digest of data/train: "});
  }
  {
    const TinyProject other;
    std::string weights = text_of_file(other.path("model/model.safetensors"));
    weights[weights.size() - 4] = static_cast<char>(weights[weights.size() - 4] ^ 1);  // one bit of the last weight
    other.write("model/model.safetensors", weights);
    const ProgramResult result = project.train({}, {}, on_ranks(3, elsewhere(other)));
    expect_one_message(result, 5, {"distzo2: rank 1 on ", "digest of the model's parameters: "});
  }
  EXPECT_FALSE(fs::exists(project.path("run/summary.json")));
}

TEST(RanksFailure, an_error_of_rank_0_in_the_steps_ends_all) {
  const TinyProject project;
  const ProgramOptions options = on_ranks(3, on_rank(0, "ulimit -f 40"));  // blocks of 512 bytes
  const ProgramResult result =
      project.train({"zo/steps=100000", "output/evaluate every=0", "parallel/slices=off"}, {}, options);
  expect_one_message(result, 3, {"distzo2: rank 0 on ", "run/"});
}

TEST(RanksFailure, what_all_ranks_find_wrong_is_said_once_as_one_rank_says_it) {
  const TinyProject project;
  const std::vector<std::string> sets{"model/folder=nowhere"};
  const ProgramResult one = project.train(sets);
  const ProgramResult all = project.train(sets, {}, on_ranks(3));
  EXPECT_EQ(all.exit_code, one.exit_code);
  EXPECT_EQ(lines_of_ours(all), 1U) << all.err;
  EXPECT_NE(all.err.find(one.err), std::string::npos) << all.err;
  const ProgramResult wrong = project.run({"train", "deck.yaml", "--nonsense"}, on_ranks(3));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(lines_of_ours(wrong), 1U) << wrong.err;
}

TEST(RanksFailure, a_rank_that_is_killed_ends_the_job) {
  const TinyProject project;
  RunningProgram program(train_words("deck.yaml", long_run), project.here(on_ranks(3)));
  const std::vector<pid_t> pids = pids_of_ranks(program, 3);
  wait_for_steps(program, project);
  ASSERT_TRUE(program.running());
  ::kill(pids[1], SIGKILL);
  const auto killed = std::chrono::steady_clock::now();
  const ProgramResult result = program.wait();
  EXPECT_NE(result.exit_code, 0);  // the launcher's: it sees the death first
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - killed).count(), 10.0);  // what is promised
  expect_gone(pids);
  EXPECT_GT(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 0U);
}

TEST(RanksFailure, a_rank_that_is_stopped_ends_the_job) {
  for (const std::size_t rank : {0U, 2U}) {
    const TinyProject project;
    RunningProgram program(train_words("deck.yaml", long_run), project.here(on_ranks(3)));
    const std::vector<pid_t> pids = pids_of_ranks(program, 3);
    wait_for_steps(program, project);
    ASSERT_TRUE(program.running());
    ::kill(pids[rank], SIGSTOP);
    const auto stopped = std::chrono::steady_clock::now();
    const ProgramResult result = program.wait();
    EXPECT_LT(Seconds(std::chrono::steady_clock::now() - stopped).count(), 10.0);  // what is promised
    expect_one_message(result, 5, {"distzo2: rank " + std::to_string(rank) + " on ", "no sign of life"});
    expect_gone(pids);
  }
}

TEST(RanksFailure, the_message_about_a_rank_that_is_stopped_has_a_line_of_its_own) {
  for (const std::size_t rank : {0U, 1U}) {
    const TinyProject project;
    ProgramOptions options = on_ranks(3);  // util-linux's script gives the launcher a terminal
    options.wrapper.insert(options.wrapper.begin(),
                           {"bash", "-c", R"sh(exec script -qec "$(printf '%q ' "$0" "$@")" /dev/null)sh"});
    RunningProgram program(train_words("deck.yaml", long_run), project.here(options));
    const std::vector<pid_t> pids = pids_of_ranks(program, 3);
    wait_for_text(program, "tokens/s");
    ASSERT_TRUE(program.running());
    ::kill(pids[rank], SIGSTOP);
    const std::string out = program.wait().out;
    const std::size_t message = out.find("distzo2: rank " + std::to_string(rank) + " on ");
    ASSERT_NE(message, std::string::npos) << out;
    const std::string before = out.substr(0, message);
    EXPECT_TRUE(before.ends_with('\n') || before.ends_with("\r\x1b[K")) << before;
    // It is the last. Rank 0, which draws the line, may itself be let go on by the launcher, just before its end.
    if (rank != 0) {
      EXPECT_EQ(out.find("tokens/s", message), std::string::npos) << out.substr(message);
    }
    expect_gone(pids);
  }
}

TEST(RanksFailure, a_job_that_is_suspended_as_a_whole_goes_on) {
  const TinyProject project;
  RunningProgram program(train_words("deck.yaml", {"zo/steps=2000", "output/evaluate every=0"}),
                         project.here(on_ranks(3)));
  const std::vector<pid_t> pids = pids_of_ranks(program, 3);
  wait_for_steps(program, project);
  for (const pid_t pid : pids) ::kill(pid, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(9));  // longer than a rank alone is given
  for (const pid_t pid : pids) ::kill(pid, SIGCONT);
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(project.summary().at("steps"), 2000);
}

TEST(RanksFailure, a_signal_to_one_rank_stops_all_after_the_same_step) {
  const std::vector<std::string> sets{"zo/steps=400", "output/evaluate every=0"};
  const TinyProject whole, project;
  for (const std::size_t rank : {1U, 0U}) {
    RunningProgram program(train_words("deck.yaml", sets, resume), project.here(on_ranks(3)));
    const std::vector<pid_t> pids = pids_of_ranks(program, 3);
    while (program.running() && program.out().find("tokens/s") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(pids[rank], SIGUSR1);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.exit_code, 75) << result.err;
    EXPECT_EQ(lines_of_ours(result), 0U) << result.err;
    EXPECT_NE(result.out.find("stopped  at the signal after step"), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << "a live line, though the launcher's output is a file";
    expect_gone(pids);
  }
  const nlohmann::json resumed = project.trained(sets, resume), expected = whole.trained(sets);
  EXPECT_EQ(resumed.at("theta_digest"), expected.at("theta_digest"));
  EXPECT_EQ(resumed.at("trajectory_digest"), expected.at("trajectory_digest"));
}

TEST(RanksFailure, a_signal_to_one_rank_while_loading_ends_all_before_the_first_step) {
  const std::string said = "stopped at the signal while loading: no step was taken";
  {  // It is there before the first instruction; the model, which cannot be read, is not asked for.
    const TinyProject project;
    fs::resize_file(project.path("model/model.safetensors"), 1000);
    const std::string pending = on_rank(1,
                                        "exec env --block-signal=TERM sh -c 'kill -TERM $$; exec \"$0\" \"$@\"' "
                                        "\"$0\" \"$@\"");
    expect_one_message(project.train({}, {}, on_ranks(2, pending)), 75, {said});
    EXPECT_FALSE(fs::exists(project.path("run")));
  }
  if (!can_preload) return;
  const TinyProject project;  // and as rank 1 imports the model to a store of its own
  const std::uint64_t bytes = host_bytes_with(project, "deck.yaml", {"memory/groups=on"}, 100);
  const std::string term = on_rank(1, fault_in_shell("pwritev chunks.bin 2 term"));
  expect_one_message(
      project.train({host_budget(bytes - 1), "memory/groups=on", "parallel/slices=off"}, {}, on_ranks(2, term)), 75,
      {said});
  EXPECT_TRUE(fs::exists(project.path("run/store-rank1")));
  EXPECT_FALSE(fs::exists(project.path("run/trajectory.zoj")));
}

TEST(RanksFailure, a_model_may_be_written_for_longer_than_the_timeout) {
  if (!can_preload) return;
  const TinyProject project;  // rank 1 could wait for rank 0's slices of the fourth step as best/ is written
  const ProgramResult result =
      project.train({"parallel/timeout=1 s", "zo/steps=4", "zo/seed=3", "output/evaluate every=2"}, {},
                    on_ranks(2, on_rank(0, fault_in_shell("fsync model.safetensors 1 sleep"))));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(project.summary().at("best").at("step"), 2);
  EXPECT_TRUE(fs::exists(project.path("run/best/model.safetensors")));
}

TEST(RanksFailure, a_rank_that_lives_but_does_not_arrive_ends_the_job_after_the_timeout) {
  // Rank 0 writes its lines into a pipe that nobody reads: once it is full, the rank waits, and its heartbeat goes
  // on.
  const TinyProject project;
  const auto ends_with = [&](const char* slices, const std::vector<std::string>& parts) {
    std::filesystem::remove(project.path("full"));
    std::filesystem::remove_all(project.path("run"));
    RunningProgram program(train_words("deck.yaml", with(long_run, {"parallel/timeout=2 s", slices})),
                           project.here(on_ranks(3, on_rank(0, "mkfifo full; exec 1<>full"))));
    const std::vector<pid_t> pids = pids_of_ranks(program, 3);
    expect_one_message(program.wait(), 5, parts);
    expect_gone(pids);
  };
  ends_with("parallel/slices=off",
            {"distzo2: rank 0 on ", "it lives, but has kept the others waiting for longer than parallel/timeout: 2 s"});
  // Those that wait for its slices name it.
  ends_with("parallel/slices=auto",
            {" on ",
             "rank 0 has kept the other ranks of its node waiting for its slices of the parameters for longer "
             "than parallel/timeout: 2 s"});
}

TEST(RanksFailure, other_commands_say_that_they_run_on_one_rank) {
  const TinyProject project;
  const ProgramResult result = project.run({"validate", "deck.yaml"}, on_ranks(2));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(lines_of_ours(result), 1U) << result.err;
  EXPECT_NE(result.err.find("mpirun started 2 processes, and only train runs on several"), std::string::npos);
}

TEST(RanksFailure, singletons_of_a_launcher_are_explained) {
  const TinyProject project;
  ProgramOptions srun;
  srun.environment = {"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2"};
  expect_one_line(project.train({}, {}, srun), 2, {"srun started 2 processes that cannot find each other"});
  // One rank that was told it is one of four, as another MPI's launcher would.
  const ProgramResult result = project.train({}, {}, on_ranks(1, "export OMPI_COMM_WORLD_SIZE=4"));
  expect_one_message(result, 2, {"mpirun started 4 ranks, but MPI sees 1: each would train alone"});
}

}  // namespace
}  // namespace distzo2
