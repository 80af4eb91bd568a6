// SPDX-License-Identifier: BSD-3-Clause
#include "app/build_info.hpp"
#include "core/error.hpp"
#include "parallel/nccl_gather.hpp"

#include <gtest/gtest.h>

#include <string>

namespace distzo2 {
namespace {

TEST(BuildInfo, names_a_commit_or_says_that_it_is_unknown) {
  std::string hash = build_git_hash();
  if (std::string const mark = "-dirty"; hash.size() > mark.size() && hash.substr(hash.size() - mark.size()) == mark) {
    hash.resize(hash.size() - mark.size());
  }
  const bool digits = hash.size() >= 12 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  EXPECT_TRUE(digits || hash == "unknown") << hash;
}

TEST(BuildInfo, names_the_libraries_with_a_version) {
  std::string const summary = build_summary();
  for (const char* const line :
       {"\nKokkos          ", "\nTeuchos         ", "\noneDNN          ", "\ncompiler        "}) {
    std::size_t const at = summary.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    std::string const value = summary.substr(at + std::string(line).size(), summary.find('\n', at + 1) - at - 17);
    EXPECT_NE(value.find_first_of("0123456789"), std::string::npos) << line;
  }
}

TEST(BuildInfo, says_whether_nccl_is_there) {
  const std::string line = "\nNCCL            ", summary = build_summary();
  const std::size_t at = summary.find(line);
  ASSERT_NE(at, std::string::npos);
  const std::string value = summary.substr(at + line.size(), summary.find('\n', at + 1) - at - line.size());
  EXPECT_EQ(value, describe_nccl());
  if (!built_for_device()) {
    EXPECT_EQ(value, "not built in");
    EXPECT_EQ(nccl_version(), "");
    EXPECT_THROW(make_nccl_id(), Error);
  }
}

}  // namespace
}  // namespace distzo2
