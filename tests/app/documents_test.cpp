// SPDX-License-Identifier: BSD-3-Clause
// What the documents point to is there.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "test_paths.hpp"
#include "tests/support/run_program.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

TEST(Documents, point_to_files_that_exist) {
  const fs::path root = test_paths::sources;
  std::vector<fs::path> documents{root / "README.md"};
  for (const char* folder : {"docs", "app", "core", "inputs", "io", "parallel", "results", "scripts", "tests"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") {
        documents.push_back(entry.path());
      }
    }
  }
  int links = 0;
  for (const fs::path& document : documents) {
    const std::string text = text_of_file(document);
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 2)) {
      const std::string target = text.substr(at + 2, text.find_first_of(")# \n", at + 2) - at - 2);
      if (!target.empty() && target.find("://") == std::string::npos) {
        EXPECT_TRUE(fs::exists(document.parent_path() / target)) << document << " points to " << target;
        ++links;
      }
    }
  }
  EXPECT_GE(links, 10);
}

TEST(Documents, show_the_shipped_deck) {
  const fs::path root = test_paths::sources;
  const std::string readme = text_of_file(root / "README.md"), fence = "```yaml\n";
  const std::string shipped = text_of_file(root / "inputs/smollm2_sst2.yaml");
  const std::size_t begin = readme.find(fence, readme.find("\n## A deck\n")) + fence.size();
  ASSERT_NE(shipped.find("model:\n"), std::string::npos);  // after a few lines on how to run it
  EXPECT_EQ(readme.substr(begin, readme.find("```", begin) - begin), shipped.substr(shipped.find("model:\n")));
}

}  // namespace
}  // namespace distzo2
