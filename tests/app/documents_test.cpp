// SPDX-License-Identifier: BSD-3-Clause
// What the documents point to is there.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/run_program.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

TEST(Documents, point_to_files_that_exist) {
  const fs::path root = DISTZO2_SOURCE_DIR;
  std::vector<fs::path> documents{root / "README.md"};
  for (const char* folder : {"docs", "app", "core", "inputs", "io", "parallel", "tests"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") {
        documents.push_back(entry.path());
      }
    }
  }
  const std::regex link(R"(\]\(([^)#\s]+))");
  int links = 0;
  for (const fs::path& document : documents) {
    const std::string text = text_of_file(document);
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      const std::string target = (*it)[1];
      if (target.find("://") == std::string::npos) {
        EXPECT_TRUE(fs::exists(document.parent_path() / target)) << document << " points to " << target;
        ++links;
      }
    }
  }
  EXPECT_GE(links, 10);
}

}  // namespace
}  // namespace distzo2
