// SPDX-License-Identifier: BSD-3-Clause
#include "core/model_shapes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/engine.hpp"
#include "core/error.hpp"

namespace distzo2 {
namespace {

TEST(ModelShapes, have_the_published_numbers_of_parameters) {
  const std::map<std::string, std::int64_t> published{
      {"opt-125m", 125'239'296},       {"opt-350m", 331'196'416},       {"opt-1.3b", 1'315'758'080},
      {"opt-2.7b", 2'651'596'800},     {"opt-6.7b", 6'658'473'984},     {"opt-13b", 12'853'473'280},
      {"opt-30b", 29'974'540'288},     {"smollm2-135m", 134'515'008},   {"llama-2-7b", 6'738'415'616},
      {"llama-2-13b", 13'015'864'320}, {"llama-2-70b", 68'976'648'192}, {"llama-3-8b", 8'030'261'248},
      {"llama-3-70b", 70'553'706'496}, {"qwen3-0.6b", 596'049'920},     {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-4b", 4'022'468'096},     {"qwen3-8b", 8'190'735'360},     {"qwen3-14b", 14'768'307'200},
      {"qwen3-32b", 32'762'123'264},
  };
  for (const auto& [name, parameters] : published)
    EXPECT_EQ(tensor_table(model_shape(name)).parameters, parameters) << name;
}

/// A block of width h: 12 h^2 of matrices, 9 h of their biases (4 h, 4 h, h), 4 h of norms.
TEST(ModelShapes, opt_175b_counts_as_by_hand) {
  const std::int64_t h = 12288, block = 12 * h * h + 13 * h;
  EXPECT_EQ(tensor_table(model_shape("opt-175b", false)).parameters, 96 * block + (2 * 50272 + 2050) * h + 2 * h);
  EXPECT_EQ(tensor_table(model_shape("opt-175b")).parameters, 96 * block + (50272 + 2050) * h + 2 * h);
}

TEST(ModelShapes, an_untied_head_adds_one_matrix) {
  const std::int64_t tied = tensor_table(model_shape("opt-1.3b")).parameters;
  EXPECT_EQ(tensor_table(model_shape("opt-1.3b", false)).parameters, tied + std::int64_t{50272} * 2048);
  EXPECT_FALSE(model_shape("qwen3-8b").tied_head);
  EXPECT_TRUE(model_shape("qwen3-8b", true).tied_head);
}

TEST(ModelShapes, every_name_has_a_shape_and_no_other_has) {
  for (const std::string& name : model_shape_names()) EXPECT_GT(tensor_table(model_shape(name)).parameters, 0) << name;
  EXPECT_THROW(model_shape("opt-14b"), Error);
}

}  // namespace
}  // namespace distzo2
