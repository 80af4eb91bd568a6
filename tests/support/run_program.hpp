// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace distzo2 {

/// How a program ended, and all that it wrote.
struct ProgramResult {
  int exit_code = -1;  // -1 where a signal ended it
  int signal = 0;
  std::string out, err;
};

struct ProgramOptions {
  std::filesystem::path folder = {};          // current folder; empty: the caller's
  std::vector<std::string> environment = {};  // NAME=value to set, NAME to take away
  std::vector<std::string> wrapper = {};      // words in front of the program: {"nice"}
  int time_limit_s = 120;                     // for wait()
};

/// The built program `distzo2`, started and not yet waited for; killed at the end where it still runs.
class RunningProgram {
public:
  explicit RunningProgram(const std::vector<std::string>& arguments, const ProgramOptions& options = {});
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  bool running();
  void send(int signal);
  std::string out() const;  // so far
  /// Waits until the time limit: then the program is killed and the test fails.
  ProgramResult wait();

private:
  bool poll();
  TemporaryFolder output_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  int time_limit_s_;
};

ProgramResult run_program(const std::vector<std::string>& arguments, const ProgramOptions& options = {});

std::string text_of_file(const std::filesystem::path& path);

}  // namespace distzo2
