// SPDX-License-Identifier: BSD-3-Clause
// What the program says while it works and when it is done.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

TEST(EvaluationMessages, say_what_is_evaluated_before_it_is) {
  const TinyProject project;
  std::string rows = "sentence\tlabel\n";
  for (int i = 0; i < 20000; ++i) rows += "row " + std::to_string(i) + (i % 2 == 0 ? " even\t0\n" : " odd\t1\n");
  project.write("test.tsv", rows);
  RunningProgram program({"evaluate", "deck.yaml"}, project.here());
  std::string early;
  while (program.running() && early.find("compute ") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    early = program.out();
  }
  EXPECT_EQ(early.find("model     LlamaForCausalLM"), 0U) << early;
  EXPECT_EQ(line_of(early, "set       "), "test.tsv, 20000 of 20000 rows");
  EXPECT_EQ(early.find("accuracy"), std::string::npos) << early;
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(line_of(result.out, "accuracy  ").find(" of 20000)"), std::string::npos) << result.out;
}

TEST(EvaluationMessages, on_a_terminal_are_a_live_line) {
  const TinyProject project;
  const ProgramResult result =  // util-linux's script gives the program a terminal
      project.run({"evaluate", "deck.yaml"}, {.wrapper = {"sh", "-c", "exec script -qec \"$0 $*\" /dev/null"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::size_t live = result.out.find("\r\x1b[Kevaluated 0 of 10"), wiped = result.out.find("\r\x1b[Kaccuracy");
  EXPECT_NE(live, std::string::npos) << result.out;
  EXPECT_NE(wiped, std::string::npos) << result.out;
  EXPECT_LT(live, wiped);
}

}  // namespace
}  // namespace distzo2
