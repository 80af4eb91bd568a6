// SPDX-License-Identifier: BSD-3-Clause
// Every reader on its corpus, in which is what fuzzers found, and on changes of it; scripts/fuzz searches on.
#include "tests/fuzz/changes.hpp"
#include "tests/fuzz/target.hpp"

#include "test_paths.hpp"
#include "tests/support/file_bytes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

namespace distzo2 {

inline void PrintTo(const FuzzTarget& target, std::ostream* out) {
  *out << target.name;
}

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t changes_in_all = 600;

class FuzzReplay : public ::testing::TestWithParam<FuzzTarget> {};

/// The input stays in the working folder where reading it ends the process.
bool read_kept(const FuzzTarget& target, const std::string& input, const std::string& name) {
  const fs::path kept = fmt::format("fuzz_{}.input", target.name);
  write_bytes(kept, input);
  bool well = false, taken = false;
  EXPECT_NO_THROW((taken = target.read(input), well = true)) << name << ", kept as " << fs::absolute(kept);
  if (well) fs::remove(kept);
  return taken;
}

TEST_P(FuzzReplay, takes_or_refuses_its_corpus_and_changes_of_it) {
  const FuzzTarget& target = GetParam();
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(test_paths::sources / "tests/fuzz/corpus" / target.name))
    files.push_back(entry.path());
  std::ranges::sort(files);
  ASSERT_FALSE(files.empty());
  std::vector<std::string> corpus;
  for (const fs::path& file : files) corpus.push_back(file_bytes(file));
  std::size_t taken = 0;
  for (std::size_t i = 0; i < corpus.size(); ++i) taken += read_kept(target, corpus[i], files[i].string()) ? 1 : 0;
  EXPECT_GT(taken, 0U) << "nothing gets to the end of the reader";
  for (std::uint64_t seed = 0; seed < changes_in_all && !HasFailure(); ++seed)
    read_kept(target, changed(corpus[seed % corpus.size()], corpus, seed),
              fmt::format("change {} of {}", seed, files[seed % corpus.size()].string()));
}

INSTANTIATE_TEST_SUITE_P(Readers, FuzzReplay, ::testing::ValuesIn(fuzz_targets()),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(FuzzTargets, have_a_corpus_each_and_none_is_left_over) {
  std::vector<std::string> named, found_there;
  for (const FuzzTarget& target : fuzz_targets()) named.emplace_back(target.name);
  for (const fs::directory_entry& entry : fs::directory_iterator(test_paths::sources / "tests/fuzz/corpus"))
    found_there.push_back(entry.path().filename().string());
  std::ranges::sort(found_there);
  EXPECT_EQ(named, found_there);
}

TEST(FuzzChanges, are_those_of_their_seed) {
  const std::vector<std::string> corpus{"abcdefgh", "12345678"};
  std::size_t different = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(changed(corpus[0], corpus, seed), changed(corpus[0], corpus, seed));
    different += changed(corpus[0], corpus, seed) != corpus[0] ? 1 : 0;
  }
  EXPECT_GT(different, 80U);
}

}  // namespace
}  // namespace distzo2
