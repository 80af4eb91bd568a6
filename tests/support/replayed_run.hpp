// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace distzo2 {

/// The trajectory kept in a folder under results/, replayed on its base model, gives theta of its run again: the digest
/// in the summary beside it.
inline void expect_replay_to_the_digest(const std::filesystem::path& run, const std::filesystem::path& model,
                                        const ProgramOptions& options = {}) {
  const TemporaryFolder folder;
  const std::filesystem::path source = test_paths::sources, kept = source / "results" / run;
  const ProgramResult result =
      run_program({"export", "--trajectory", (kept / "trajectory.zoj").string(), "--model", (source / model).string(),
                   "--output", (folder.path() / "theta").string(), "--json"},
                  options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("theta_digest"),
            nlohmann::json::parse(text_of_file(kept / "summary.json")).at("theta_digest"));
}

}  // namespace distzo2
