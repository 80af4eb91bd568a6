// SPDX-License-Identifier: BSD-3-Clause
// A disk that is really full: the project, its store and its run lie on a small file system of the test's own, which is
// mounted where nobody else sees it.
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "tests/support/store_on_disk.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void must_work(int result, const char* what) {
  if (result != 0) throw std::system_error(errno, std::generic_category(), what);
}

/// 64 MiB, mounted for this process and those it starts; the folders of temporary files are made there until `leave`.
class SmallDisk {
protected:
  SmallDisk() {
    must_work(::unshare(CLONE_NEWNS), "unshare");
    must_work(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount /");
    must_work(::mount("none", mounted_.path().c_str(), "tmpfs", 0, "size=64m"), "mount tmpfs");
    const char* const before = std::getenv("TMPDIR");
    before_ = before != nullptr ? before : "";
    ::setenv("TMPDIR", mounted_.path().c_str(), 1);
  }
  ~SmallDisk() { ::umount2(mounted_.path().c_str(), MNT_DETACH); }
  void leave() const { before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1); }

private:
  TemporaryFolder mounted_;
  std::string before_;
};

class DiskFull : protected SmallDisk, public StoreOnDisk {
protected:
  DiskFull() {
    leave();
    users_ = users_files();
  }
  ~DiskFull() override { EXPECT_EQ(users_files(), users_); }

  /// What a run has not made.
  std::map<std::string, std::string> users_files() const {
    std::map<std::string, std::string> files;
    for (const char* name : {"deck.yaml", "task.json", "train.tsv", "dev.tsv", "test.tsv", "model/config.json",
                             "model/tokenizer.json", "model/model.safetensors"})
      files[name] = text_of_file(project_.path(name));
    return files;
  }
  /// `fault`, with the disk full from then on.
  ProgramOptions filled_by(const std::string& fault) const {
    ProgramOptions options = with_fault(fault);
    options.environment.push_back("DISTZO2_TEST_BALLAST=" + project_.path("ballast").string());
    return options;
  }
  /// The steps of the run that stopped are the first of an undisturbed one's, and it goes on from there once there is
  /// room. Returns their number.
  std::size_t expect_first_steps_of(const json& undisturbed, const std::string& folder, const Words& more = {}) {
    EXPECT_EQ(fs::space(project_.path()).available, 0);
    json stopped = json::array();
    if (fs::exists(project_.path("run/trajectory.zoj"))) stopped = steps_of("run");
    fs::remove(project_.path("ballast"));
    const json all = steps_of(folder);
    EXPECT_LT(stopped.size(), all.size());
    for (std::size_t t = 0; t < stopped.size(); ++t) EXPECT_EQ(stopped[t], all[t]) << t;
    expect_going_on(undisturbed, more);
    return stopped.size();
  }
  json steps_of(const std::string& run) const {
    return project_.json({"inspect", run + "/trajectory.zoj", "--json"}).at("steps");
  }

private:
  std::map<std::string, std::string> users_;
};

// As on a file system that takes a file's space only as it is written.
const std::string not_reserved = "fallocate chunks.bin 1 95;";

TEST_F(DiskFull, while_importing_ends_a_run_that_begins_again_later) {
  expect_one_line(project_.train(sets_, {}, filled_by(not_reserved + "pwritev chunks.bin 3 fill")), 3,
                  {"scratch/", "chunks.bin: cannot be written: No space left on device"});
  EXPECT_EQ(expect_first_steps_of(whole_, "whole"), 0);
}

TEST_F(DiskFull, while_writing_back_ends_a_run_that_goes_on_later) {
  expect_one_line(project_.train(sets_, {}, filled_by(not_reserved + "pwritev chunks.bin 20 fill")), 3,
                  {"scratch/", "chunks.bin: cannot be written: No space left on device"});
  EXPECT_GT(expect_first_steps_of(whole_, "whole"), 0);
}

TEST_F(DiskFull, leaves_a_store_the_space_that_it_has_and_ends_the_run_where_its_own_files_grow) {
  const json undisturbed = undisturbed_run("400");
  const ProgramResult result = project_.train(with({"zo/steps=400"}), {}, filled_by("pwritev chunks.bin 20 fill"));
  expect_one_line(result, 3, {"run/metrics.jsonl: writing failed (is the disk full?)"});
  EXPECT_GT(expect_first_steps_of(undisturbed, "undisturbed", {"zo/steps=400"}), 2);
  expect_each_step_once(project_.metrics(), 400);
}

TEST_F(DiskFull, before_the_store_is_there_refuses_the_run_and_leaves_no_store) {
  Words plan{"plan", "deck.yaml", "--json"};
  for (const std::string& set : sets_) plan.insert(plan.end(), {"--set", set});
  const auto needed = project_.json(plan).at("scratch").at("needed_bytes").get<std::uint64_t>();
  {
    std::ofstream ballast(project_.path("ballast"), std::ios::binary);
    const std::string piece(4096, 'x');
    while (ballast.good() && fs::space(project_.path()).available > needed / 2) ballast << piece << std::flush;
    ASSERT_TRUE(ballast.good());
  }
  expect_one_line(project_.train(sets_), 3, {"chunks.bin: ", " more are needed", "memory/scratch folder"});
  EXPECT_TRUE(!fs::exists(project_.path("scratch")) || fs::is_empty(project_.path("scratch")));
  fs::remove(project_.path("ballast"));
  expect_going_on(whole_);
}

}  // namespace
}  // namespace distzo2
