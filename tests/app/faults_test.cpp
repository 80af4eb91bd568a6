// SPDX-License-Identifier: BSD-3-Clause
// A disk that is full, fails, loses or changes what it holds, or goes away: one message, exit code 3, the user's files
// as they were, and a run that goes on where it stopped.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

#ifdef __SANITIZE_ADDRESS__
constexpr bool can_preload = false;  // its own library has to be the first
#else
constexpr bool can_preload = true;
#endif

ProgramOptions with_fault(const std::string& fault) {
  return {.environment = {std::string("LD_PRELOAD=") + DISTZO2_TEST_FAULTS, "DISTZO2_TEST_FAULT=" + fault}};
}

/// A tiny model from a folder, in too little memory by one byte and more: decoder blocks go to a store on disk.
class Faults : public ::testing::Test {
protected:
  Faults() {
    const Words plan{"plan", "deck.yaml", "--json", "--set", "memory/groups=on"};
    const auto bytes = project_.json(plan).at("host").at("bytes").get<std::uint64_t>();
    sets_ = {"memory/host budget=" + std::to_string(bytes - 1) + " B", "memory/groups=on", "memory/write back every=1",
             "memory/scratch folder=scratch", "output/evaluate every=0"};
    whole_ = project_.trained(with({"output/folder=whole"}));
    EXPECT_GT(whole_.at("bytes_written"), 0);
    model_ = text_of_file(project_.path("model/model.safetensors"));
  }
  ~Faults() override { EXPECT_EQ(text_of_file(project_.path("model/model.safetensors")), model_); }

  Words with(const Words& more) const {
    Words sets = sets_;
    sets.insert(sets.end(), more.begin(), more.end());
    return sets;
  }
  /// The run goes on and ends as the one that was never disturbed.
  json expect_going_on(const json& undisturbed, const Words& more = {}) {
    const json resumed = project_.trained(with(more), {"--resume", "auto"});
    for (const char* key : {"theta_digest", "trajectory_digest", "steps"})
      EXPECT_EQ(resumed.at(key), undisturbed.at(key));
    return resumed;
  }

  TinyProject project_;
  Words sets_;
  json whole_;
  std::string model_;
};

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

TEST_F(Faults, of_calls_that_move_less_than_asked_are_none) {
  if (!can_preload) return;
  for (const char* fault : {"pwritev chunks.bin 9 short", "pwritev chunks.bin 9 interrupt", "preadv chunks.bin 9 short",
                            "preadv chunks.bin 9 interrupt"}) {
    SCOPED_TRACE(fault);
    EXPECT_EQ(project_.trained(sets_, {}, with_fault(fault)).at("theta_digest"), whole_.at("theta_digest"));
    fs::remove_all(project_.path("run"));
  }
}

TEST_F(Faults, an_import_that_was_killed_goes_on_with_the_chunk_that_is_missing) {
  if (!can_preload) return;
  EXPECT_EQ(project_.train(sets_, {}, with_fault("pwritev chunks.bin 6 kill")).signal, SIGKILL);
  const json resumed = expect_going_on(whole_);
  EXPECT_LT(resumed.at("bytes_written"), whole_.at("bytes_written"));
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
    const Words long_run = with({"zo/steps=400"});
    RunningProgram program(train_words("deck.yaml", long_run), project_.here());
    while (program.running() && size_of(project_.path("run/trajectory.zoj")) < 2000)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    program.send(SIGSTOP);
    ASSERT_TRUE(program.running());
    what(fs::directory_iterator(project_.path("scratch"))->path());
    program.send(SIGCONT);
    expect_one_line(program.wait(), 3, parts);
    const json undisturbed = project_.trained({"zo/steps=400", "output/folder=undisturbed", "output/evaluate every=0"});
    expect_going_on(undisturbed, {"zo/steps=400"});
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
