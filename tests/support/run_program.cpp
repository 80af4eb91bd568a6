// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/run_program.hpp"

#include "core/clock.hpp"
#include "test_paths.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace distzo2 {
namespace {

constexpr auto poll_period = std::chrono::milliseconds(2);

/// The caller's environment with these changes.
std::vector<std::string> changed_environment(const std::vector<std::string>& changes) {
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = name_of(*entry);
    if (std::ranges::none_of(changes, [&](const std::string& change) { return name_of(change) == name; })) {
      all.emplace_back(*entry);
    }
  }
  std::ranges::copy_if(changes, std::back_inserter(all),
                       [](const std::string& change) { return change.find('=') != std::string::npos; });
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) {
    list.push_back(text.data());
  }
  list.push_back(nullptr);
  return list;
}

}  // namespace

RunningProgram::RunningProgram(const std::vector<std::string>& arguments, const ProgramOptions& options)
    : time_limit_s_(options.time_limit_s) {
  std::vector<std::string> words = options.wrapper;
  words.emplace_back(test_paths::program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = changed_environment(options.environment);
  const std::string out = output_.path() / "out";
  const std::string err = output_.path() / "err";

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  if (!options.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  }
  // Tests that run in a script's background ignore SIGINT; the program under test shall not.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) sigaddset(&signals, number);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&pid_, words.front().c_str(), &actions, &attributes, pointers(words).data(),
                                 pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), words.front());
  }
}

RunningProgram::~RunningProgram() {
  if (running()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

bool RunningProgram::poll() {
  if (!ended_) {
    ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  }
  return ended_;
}

bool RunningProgram::running() {
  return !poll();
}

void RunningProgram::send(int signal) {
  if (running()) {
    ::kill(pid_, signal);
  }
}

std::string RunningProgram::out() const {
  return text_of_file(output_.path() / "out");
}

ProgramResult RunningProgram::wait() {
  for (const auto start = Clock::now(); !poll() && Clock::now() - start < std::chrono::seconds(time_limit_s_);) {
    std::this_thread::sleep_for(poll_period);
  }
  if (!ended_) {
    ADD_FAILURE() << "the program did not end in time; it wrote:\n" << out();
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    ended_ = true;
  }
  ProgramResult result;
  result.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  result.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  result.out = out();
  result.err = text_of_file(output_.path() / "err");
  return result;
}

ProgramResult run_program(const std::vector<std::string>& arguments, const ProgramOptions& options) {
  return RunningProgram(arguments, options).wait();
}

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();  // a buffer at a time
  return std::move(text).str();
}

}  // namespace distzo2
