// SPDX-License-Identifier: BSD-3-Clause
// GoogleTest on several ranks: rank 0 prints as ever, the others only what failed; a failure on any fails all.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "parallel/mpi_session.hpp"
#include "tests/support/test_world.hpp"

namespace distzo2 {
namespace {

Communicator* world = nullptr;

class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override { name_ = test.name(); }
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("rank %d: %s: %s:%d: %s\n", world->rank(), name_.c_str(),
                result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(), result.message());
  }
  std::string name_;  // asking GoogleTest for it would wait for ever here
};

}  // namespace

Communicator& test_world() {
  return *world;
}

}  // namespace distzo2

int main(int argc, char** argv) {
  using namespace distzo2;
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  MpiSession session(find_launcher());
  world = &session.world();
  if (!world->is_first()) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  const int code = RUN_ALL_TESTS();
  std::uint64_t failed = 0;
  for (const std::uint64_t c : world->gather(static_cast<std::uint64_t>(code))) failed |= c;
  return static_cast<int>(failed);
}
