// SPDX-License-Identifier: BSD-3-Clause
// A disk that is full, fails, loses or changes what it holds, or goes away: one message, exit code 3, the user's files
// as they were, and a run that goes on where it stopped.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/store_on_disk.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Faults : public StoreOnDisk {};

TEST_F(Faults, of_a_disk_that_is_full_or_broken_end_a_run_that_goes_on_later) {
  if (!can_preload) return;
  struct Case {
    const char *fault, *part;
  };
  for (const Case& c : {Case{"pwritev chunks.bin 3 28", "cannot be written: No space left on device"},   // importing
                        Case{"pwritev chunks.bin 40 28", "cannot be written: No space left on device"},  // writing back
                        Case{"preadv chunks.bin 30 5", "cannot be read: Input/output error"},
                        Case{"fdatasync chunks.bin 1 5", "cannot be made durable: Input/output error"},
                        Case{"fdatasync chunks.bin 4 5", "cannot be made durable: Input/output error"}}) {
    SCOPED_TRACE(c.fault);
    expect_one_line(project_.train(sets_, {}, with_fault(c.fault)), 3, {"scratch/", "chunks.bin", c.part});
    expect_going_on(whole_);
    fs::remove_all(project_.path("run"));
  }
}

TEST_F(Faults, of_a_trajectory_that_cannot_be_made_durable_end_the_run_at_the_first) {
  if (!can_preload) return;
  for (const std::string sync : {"0 s", "1 s"}) {  // by the step, and by its helper or before a store's write
    SCOPED_TRACE(sync);
    const Words sets = with({"checkpoint/trajectory sync=" + sync, "output/folder=run"});
    // Later calls would succeed: the system tells of what it dropped only once.
    expect_one_line(project_.train(sets, {}, with_fault("fdatasync trajectory.zoj 3 once")), 3,
                    {"run/trajectory.zoj", "syncing it failed: Input/output error"});
    expect_going_on(whole_);
    fs::remove_all(project_.path("run"));
  }
}

TEST_F(Faults, of_calls_that_move_less_than_asked_are_none) {
  if (!can_preload) return;
  for (const char* fault : {"pwritev chunks.bin 9 short", "pwritev chunks.bin 9 interrupt", "preadv chunks.bin 9 short",
                            "preadv chunks.bin 9 interrupt"}) {
    SCOPED_TRACE(fault);
    EXPECT_EQ(project_.trained(sets_, {}, with_fault(fault)).at("theta_digest"), whole_.at("theta_digest"));
    fs::remove_all(project_.path("run"));
  }
}

TEST_F(Faults, of_any_bit_that_is_read_are_found) {
  if (!can_preload) return;
  const auto is_found = [&](int call) {
    SCOPED_TRACE(call);
    const ProgramResult result =
        project_.train(sets_, {}, with_fault("preadv chunks.bin " + std::to_string(call) + " flip"));
    if (result.exit_code == 0)  // there was no such call
      EXPECT_EQ(project_.summary("run").at("theta_digest"), whole_.at("theta_digest"));
    else
      expect_one_line(result, 3, {"scratch/", "chunks.bin: chunk", "its checksum does not match"});
    for (const char* folder : {"run", "scratch"}) fs::remove_all(project_.path(folder));
    return result.exit_code != 0;
  };
  int last = 0, beyond = 1;  // the last read, that of a digest after all steps, is found too
  while (is_found(beyond)) last = std::exchange(beyond, 2 * beyond);
  while (beyond - last > 1) {
    const int middle = (last + beyond) / 2;
    (is_found(middle) ? last : beyond) = middle;
  }
  EXPECT_GT(last, 20);
}

TEST_F(Faults, of_a_file_system_that_refuses_direct_transfers_are_none) {
  if (!can_preload) return;
  take_three_steps();  // the headers of the store that they leave are read by several threads at once
  const ProgramResult result = project_.train(sets_, {"--resume", "auto"}, with_fault("preadv chunks.bin 1 buffered"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(project_.summary("run").at("theta_digest"), whole_.at("theta_digest"));
}

TEST_F(Faults, an_import_that_was_killed_goes_on_with_the_chunk_that_is_missing) {
  if (!can_preload) return;
  EXPECT_EQ(project_.train(sets_, {}, with_fault("pwritev chunks.bin 6 kill")).signal, SIGKILL);
  const json resumed = expect_going_on(whole_);
  EXPECT_LT(resumed.at("bytes_written"), whole_.at("bytes_written"));
}

TEST_F(Faults, a_bench_that_was_killed_leaves_nothing_on_the_disk) {
  if (!can_preload) return;
  Words words{"bench", "speed", "deck.yaml"};
  for (const std::string& set : sets_) words.insert(words.end(), {"--set", set});
  EXPECT_EQ(project_.run(words, with_fault("pwritev chunks.bin 6 kill")).signal, SIGKILL);
  EXPECT_TRUE(fs::is_empty(project_.path("scratch")));
  EXPECT_EQ(project_.run(words).exit_code, 0);
  EXPECT_TRUE(fs::is_empty(project_.path("scratch")));
}

TEST_F(Faults, a_store_beyond_the_limit_of_file_sizes_is_refused_and_leaves_nothing) {
  const ProgramOptions limited{.wrapper = {"sh", "-c", "ulimit -f 40; exec \"$0\" \"$@\""}};  // 512 bytes each
  expect_one_line(project_.train(sets_, {}, limited), 3, {"chunks.bin", "File too large"});
  expect_going_on(whole_);
}

/// What happens to a run's store while the run is stopped between two instructions, after some of its steps.
class StoreFaults : public Faults {
protected:
  template <class Disturb>
  void disturb(const Words& parts, const Disturb& what) {
    const Words long_run = with({"zo/steps=200"});
    RunningProgram program(train_words("deck.yaml", long_run), project_.here());
    while (program.running() && size_of(project_.path("run/trajectory.zoj")) < 2000)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    program.send(SIGSTOP);
    ASSERT_TRUE(program.running());
    what(fs::directory_iterator(project_.path("scratch"))->path());
    program.send(SIGCONT);
    expect_one_line(program.wait(), 3, parts);
    expect_going_on(undisturbed_run("200"), {"zo/steps=200"});
    EXPECT_TRUE(fs::is_empty(project_.path("scratch")));
  }
};

TEST_F(StoreFaults, a_folder_that_vanishes) {
  disturb({"chunks.bin", "was removed while in use"},
          [&](const fs::path&) { fs::remove_all(project_.path("scratch")); });
}

TEST_F(StoreFaults, a_store_that_is_cut_short) {
  disturb({"chunks.bin", "bytes are missing there"},
          [](const fs::path& store) { fs::resize_file(store / "chunks.bin", 16384); });
}

TEST_F(StoreFaults, chunks_that_changed) {
  disturb({"chunks.bin: chunk", "its checksum does not match"}, [](const fs::path& store) {
    const auto bytes = fs::file_size(store / "chunks.bin");
    std::fstream file(store / "chunks.bin", std::ios::in | std::ios::out | std::ios::binary);
    for (std::uintmax_t at = 4096 + 100; at < bytes; at += 4096) {  // no page but may be a header's
      file.seekg(static_cast<std::streamoff>(at));
      const int was = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(was ^ 1));
    }
  });
}

}  // namespace
}  // namespace distzo2
