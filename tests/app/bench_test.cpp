// SPDX-License-Identifier: BSD-3-Clause
// What `bench` prints hangs together; what it measures is the machine's.
#include <gtest/gtest.h>

#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

TEST(BenchStep, parts_and_rest_add_up_to_the_step) {
  const TinyProject project;
  const nlohmann::json result =
      project.json({"bench", "step", "deck.yaml", "--repeats", "3", "--noise-pairs", "0", "--json"});
  double sum = 0;
  for (const char* part :
       {"z_s", "update_and_packing_s", "gemm_s", "writes_and_softmax_s", "attention_s", "norm_s", "rest_s"})
    sum += result.at(part).get<double>();
  EXPECT_DOUBLE_EQ(sum, result.at("step_s").get<double>());
}

}  // namespace
}  // namespace distzo2
