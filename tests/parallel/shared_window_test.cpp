// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/shared_window.hpp"

#include "core/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_world.hpp"
#include "tests/support/window_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

/// A folder of rank 0's that all ranks know.
class CommonFolder {
public:
  CommonFolder() {
    if (test_world().is_first()) mine_.emplace();
    path_ = test_world().broadcast(mine_ ? mine_->path().string() : std::string());
  }
  ~CommonFolder() { test_world().barrier(); }
  const std::string& path() const { return path_; }

private:
  std::optional<TemporaryFolder> mine_;
  std::string path_;
};

void expect_one_memory(SharedWindow& window) {
  Communicator& world = test_world();
  ASSERT_EQ(window.owners(), world.size());
  ASSERT_EQ(window.owner(), world.rank());
  const std::shared_ptr<std::byte> first = window.allocate("first", 100), second = window.allocate("second", 50000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.get()) % 4096, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.get()) % 4096, 0U);
  for (std::size_t i = 0; i < 50000; ++i) ASSERT_EQ(second.get()[i], std::byte{0});
  world.barrier();
  second.get()[world.rank()] = static_cast<std::byte>(world.rank() + 1);
  world.barrier();
  for (int r = 0; r < world.size(); ++r) EXPECT_EQ(second.get()[r], static_cast<std::byte>(r + 1));
  EXPECT_EQ(first.get()[0], std::byte{0});
  world.barrier();
}

TEST(SharedWindow, is_one_memory_of_all_ranks_of_a_node) {
  SharedWindow window(test_world(), 60000, test_world().rank());
  expect_one_memory(window);
}

/// Whether the kernel takes pages before they are written.
bool takes_pages() {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool can = ::madvise(page, 4096, 23) == 0;
  ::munmap(page, 4096);
  if (!can) std::cout << "left out: Linux before 5.14\n";
  return can;
}

TEST(SharedWindow, has_all_its_pages_before_any_is_written) {
  if (!takes_pages()) return;
  if (test_world().size() == 1) return;  // plain memory
  constexpr std::size_t pages = 2000;    // 7.8 MiB, some for each of four ranks
  SharedWindow window(test_world(), pages * 4096, test_world().rank());
  std::vector<unsigned char> there(pages);
  ASSERT_EQ(::mincore(window.allocate("all", pages * 4096).get(), pages * 4096, there.data()), 0);
  EXPECT_EQ(std::ranges::count_if(there, [](unsigned char page) { return (page & 1U) == 0; }), 0);
}

TEST(SharedWindow, finds_pages_that_are_not_to_be_had_without_a_signal) {
  if (!takes_pages()) return;
  // Of a file of one page the second one is as little there as on a file system that is full.
  const TemporaryFolder folder;
  const int fd = ::open((folder.path() / "one page").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::ftruncate(fd, 4096), 0);
  void* const mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_TRUE(take_pages(mapped, 4096));
  EXPECT_FALSE(take_pages(mapped, 8192));
  ::munmap(mapped, 8192);
}

TEST(SharedWindow, maps_a_file_that_nobody_finds_afterwards) {
  const CommonFolder folder;
  {
    SharedWindow window(test_world(), 60000, test_world().rank(), folder.path());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    EXPECT_EQ(window.place(), folder.path());
    EXPECT_EQ(std::filesystem::path(backing_folder(window.allocate("any", 1).get())), folder.path());
    expect_one_memory(window);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

std::string refusal(std::size_t bytes, const std::string& folder) {
  try {
    const SharedWindow window(test_world(), bytes, test_world().rank(), folder);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return "not refused";
}

TEST(SharedWindow, refuses_what_its_file_system_cannot_hold_and_says_what_to_do) {
  constexpr std::size_t bytes = std::size_t{1} << 55;
  const CommonFolder folder;
  const std::string chosen = refusal(bytes, folder.path());
  EXPECT_TRUE(chosen.starts_with("parallel/shared memory folder: " + folder.path() + " has ")) << chosen;
  EXPECT_NE(chosen.find("takes 36028797.0"), std::string::npos) << chosen;  // 2^55 / 1e9 = 36,028,797.02 GB
  EXPECT_NE(chosen.find("parallel/slices: off"), std::string::npos) << chosen;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const std::string none = refusal(1000, folder.path() + "/none");
  EXPECT_NE(none.find("none: No such file or directory"), std::string::npos) << none;
  if (test_world().size() == 1) return;  // plain memory
  const std::string window = refusal(bytes, "");
  EXPECT_TRUE(window.starts_with(window_folder() + " has ")) << window;
  EXPECT_NE(window.find("parallel/shared memory folder"), std::string::npos) << window;
}

/// No file of this process may have more bytes.
class LargestFile {
public:
  explicit LargestFile(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LargestFile() { ::setrlimit(RLIMIT_FSIZE, &before_); }

private:
  rlimit before_{};
};

TEST(SharedWindow, refuses_what_is_larger_than_a_file_may_be_and_takes_what_is_not) {
  if (test_world().size() == 1) return;  // plain memory
  // 1 MiB, a page of words and one to begin at, and 64 KiB for the library: 1,122,304 bytes.
  constexpr std::size_t bytes = std::size_t{1} << 20, all = bytes + 2 * 4096 + 65536;
  {
    const LargestFile limit(all);
    SharedWindow window(test_world(), bytes, test_world().rank());
    expect_one_memory(window);
  }
  const LargestFile limit(all - 1);
  const std::string problem = refusal(bytes, "");
  EXPECT_TRUE(problem.starts_with("the largest file that a rank may write (ulimit -f) has 1.1 MB, ")) << problem;
  EXPECT_NE(problem.find("takes 1.1 MB; raise it, or set parallel/slices: off"), std::string::npos) << problem;
}

TEST(SharedWindow, ends_a_wait_that_is_longer_than_the_timeout) {
  SharedWindow window(test_world(), 1000, test_world().rank() + 7);  // of a world of several nodes
  window.still_waiting(0, 1e6, "its slices of the parameters");
  window.set_timeout(0.5);
  window.still_waiting(0, 0.4, "its slices of the parameters");
  try {
    window.still_waiting(0, 0.6, "its slices of the parameters");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::rank_failed);
    EXPECT_STREQ(e.what(),
                 "rank 7 has kept the other ranks of its node waiting for its slices of the parameters for "
                 "longer than parallel/timeout: 0.5 s; where it is only slow, give a longer one");
  }
}

/// As a rank that fails does: the window goes while the stack is unwound.
void fail_with(std::unique_ptr<SharedWindow> window) {
  try {
    const std::unique_ptr<SharedWindow> gone = std::move(window);
    throw Error(ExitCode::file, "a failure");
  } catch (const Error&) {
  }
}

TEST(SharedWindow, of_a_rank_that_fails_ends_the_waits_of_the_others) {
  auto window = std::make_unique<SharedWindow>(test_world(), 1000, test_world().rank());
  const bool first = test_world().is_first();
  if (first) fail_with(std::move(window));
  test_world().barrier();
  if (first) return;
  window->still_waiting(0, 1.0, "its slices of the parameters");  // the job may end with the message of rank 0
  window->still_waiting(0, 10.0, "its slices of the parameters");
  EXPECT_THROW(window->still_waiting(0, 11.5, "its slices of the parameters"), Error);
  fail_with(std::move(window));
}

}  // namespace
}  // namespace distzo2
