// SPDX-License-Identifier: BSD-3-Clause
// A profiler attaches through Kokkos Tools, and finds all work under names of ours.
#include <gtest/gtest.h>

#include <sstream>

#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

struct Seen {
  std::string kind, label;
  long times = 0;
};

std::vector<Seen> seen_in_a_run(const TinyProject& project, const std::string& variable,
                                const std::vector<std::string>& sets) {
  const std::string file = project.path("seen.txt").string();
  project.trained(sets, {},
                  {.environment = {variable + "=" + test_paths::kokkos_tool, "DISTZO2_TEST_TOOL_OUTPUT=" + file}});
  std::istringstream lines(text_of_file(file));
  std::vector<Seen> all;
  for (Seen s; lines >> s.kind >> s.times && std::getline(lines >> std::ws, s.label);) all.push_back(s);
  return all;
}

TEST(KokkosTools, see_every_kernel_and_allocation_under_a_name_of_ours) {
  for (const char* variable : {"KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY"}) {
    const TinyProject project;
    long products = 0, buffers = 0, scratch = 0, rows = 0;
    for (const Seen& s : seen_in_a_run(project, variable, {"memory/staging=always"})) {
      EXPECT_TRUE(s.label.starts_with("distzo2::")) << s.kind << " " << s.label;
      if (s.label == "distzo2::linear") products += s.times;
      if (s.label == "distzo2::unit_buffer") buffers += s.times;
      if (s.label == "distzo2::scratch") scratch += s.times;
      if (s.label == "distzo2::look_up_rows") rows += s.times;
    }
    EXPECT_GT(products, 12 * 2 * 4) << variable;  // steps, blocks, calls a block
    EXPECT_EQ(buffers, 3);
    EXPECT_GE(scratch, 6) << variable;  // of a thread: theta, two panels, the packed one, z, a product
    EXPECT_GE(rows, 12) << variable;    // of the table of tokens, which streams, in each step
  }
}

TEST(KokkosTools, that_cannot_be_loaded_are_refused) {
  const TinyProject project;
  for (const char* variable : {"KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY"})
    expect_one_line(project.run({"evaluate", "deck.yaml"}, {.environment = {std::string(variable) + "=/none.so"}}), 2,
                    {variable, "/none.so", "accepted"});
}

}  // namespace
}  // namespace distzo2
