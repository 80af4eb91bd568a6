// SPDX-License-Identifier: BSD-3-Clause
// What the program says while it works and when it is done.
#include <gtest/gtest.h>

#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

/// The rest of the line that begins with this label; empty where there is none.
std::string line_of(const std::string& text, const std::string& label) {
  const std::size_t at = ("\n" + text).find("\n" + label);
  return at == std::string::npos ? "" : text.substr(at + label.size(), text.find('\n', at) - at - label.size());
}

TEST(RunMessages, name_the_threads_the_instruction_set_and_the_gemm) {
  const TinyProject project;
  const auto compute = [&](const std::string& gemm, const std::string& threads, const std::string& folder) {
    const ProgramResult result =
        project.train({"output/folder=" + folder}, {},
                      {.environment = {"OMP_NUM_THREADS=" + threads, "DISTZO2_ISA=avx2", "DISTZO2_GEMM=" + gemm}});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find("arithmetic"), std::string::npos) << result.out;
    return line_of(result.out, "compute  ");
  };
  EXPECT_EQ(compute("onednn", "2", "a").find("fp32, 2 threads, instruction set avx2, GEMM oneDNN "), 0U);
  EXPECT_EQ(compute("kokkosblas", "1", "b").find("fp32, 1 thread, instruction set avx2, GEMM KokkosBlas"), 0U);
  // What the bits depend on in full is in the summary and the trajectory.
  for (const json& kept : {project.summary("a"), project.json({"inspect", "a", "--json"})})
    EXPECT_NE(kept.at("arithmetic").get<std::string>().find("; kernels avx2; compute fp32; tiles "), std::string::npos);
}

}  // namespace
}  // namespace distzo2
