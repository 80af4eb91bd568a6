// SPDX-License-Identifier: BSD-3-Clause
// Who may go on with a run: what the lock file tells of a process that is alive, has ended, or is elsewhere.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>

#include "app/run_lock.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

const std::vector<std::string> a_step_a_time{"zo/steps=3", "data/dev=", "data/test=", "checkpoint/time limit=0.001 s"};

TEST(RunLock, names_its_holder_in_words_that_it_reads_again) {
  const LockHolder here = this_process();
  EXPECT_EQ(here.pid, static_cast<std::uint64_t>(::getpid()));
  EXPECT_GT(here.started, 0U);
  const std::optional<LockHolder> read = holder_of(text_of(here));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->host, here.host);
  EXPECT_EQ(read->pid, here.pid);
  EXPECT_EQ(read->started, here.started);
  EXPECT_EQ(read->boot, here.boot);
  EXPECT_EQ(read->job, here.job);
  for (const char* text : {"", "\n", "host: x\npid: y\n", "pid: 12\n"}) EXPECT_FALSE(holder_of(text)) << text;
}

TEST(RunLock, tells_processes_that_are_gone_from_those_that_may_work) {
  const LockHolder here = this_process();
  EXPECT_EQ(state_of(here, here, false), HolderState::works);
  EXPECT_EQ(state_of(here, here, true), HolderState::gone);  // this kernel lets go of a lock with its process alone
  LockHolder other = here;
  other.started += 1;  // another process of that number
  EXPECT_EQ(state_of(other, here, false), HolderState::gone);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  other = here;
  other.pid = static_cast<std::uint64_t>(child);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(state_of(other, here, false), HolderState::gone);
  other = here;
  other.boot = "before";
  EXPECT_EQ(state_of(other, here, true), HolderState::gone);  // this machine was started anew since
  other.host = "elsewhere";
  EXPECT_EQ(state_of(other, here, true), HolderState::unknown);
  other.job = "slurm 4711";
  EXPECT_EQ(state_of(other, here, true), HolderState::unknown);
  LockHolder requeued = here;
  requeued.job = "slurm 4711";
  EXPECT_EQ(state_of(other, requeued, true), HolderState::gone);
}

TEST(RunLock, is_empty_after_a_run_and_names_it_meanwhile) {
  const TemporaryFolder folder;
  const RunFolder run{folder.path()};
  {
    const RunLock lock(run);
    EXPECT_EQ(lock.note(), "");
    const std::optional<LockHolder> holder = holder_of(text_of_file(run.lock()));
    ASSERT_TRUE(holder);
    EXPECT_EQ(holder->pid, static_cast<std::uint64_t>(::getpid()));
  }
  EXPECT_EQ(text_of_file(run.lock()), "");
}

TEST(RunLock, of_a_process_that_was_killed_is_taken_over) {
  const TinyProject project;
  ASSERT_EQ(project.train(a_step_a_time).exit_code, 75);
  LockHolder dead = this_process();
  dead.started += 1;
  project.write("run/.lock", text_of(dead));
  const ProgramResult resumed = project.train(a_step_a_time, resume);
  EXPECT_EQ(resumed.exit_code, 75) << resumed.err;
  EXPECT_NE(resumed.out.find("process " + std::to_string(::getpid()) + " on " + dead.host), std::string::npos);
  EXPECT_NE(resumed.out.find("ended without giving this run up"), std::string::npos) << resumed.out;
}

TEST(RunLock, of_a_process_on_another_machine_is_refused_with_the_remedy) {
  const TinyProject project;
  ASSERT_EQ(project.train(a_step_a_time).exit_code, 75);
  LockHolder other = this_process();
  other.host = "node17";
  other.boot = "another";
  other.job = "slurm 4711";
  project.write("run/.lock", text_of(other));
  const std::string lock = project.path("run/.lock").string();
  expect_one_line(project.train(a_step_a_time, resume), 2,
                  {"process " + std::to_string(::getpid()) + " on node17 (job slurm 4711)", "remove " + lock});
  EXPECT_EQ(text_of_file(lock), text_of(other));
  // The same job, requeued, and once the file was removed, as it says.
  EXPECT_EQ(project.train(a_step_a_time, resume, {.environment = {"SLURM_JOB_ID=4711"}}).exit_code, 75);
  project.write("run/.lock", text_of(other));
  std::filesystem::remove(lock);
  EXPECT_EQ(project.train(a_step_a_time, resume).exit_code, 75);
}

TEST(RunLock, of_a_run_that_works_names_it) {
  const TinyProject project;
  RunningProgram first(train_words("deck.yaml", {"zo/steps=100000", "output/evaluate every=0"}),
                       project.here({.environment = {"SLURM_JOB_ID=4711"}}));
  wait_for_text(first, "tokens/s");
  expect_one_line(project.train({"zo/steps=100000"}, resume), 2,
                  {"another process works on this run: process ", "(job slurm 4711), since "});
  first.send(SIGTERM);
  EXPECT_EQ(first.wait().exit_code, 75);
}

}  // namespace
}  // namespace distzo2
