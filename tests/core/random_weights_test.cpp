// SPDX-License-Identifier: BSD-3-Clause
#include "core/random_weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/engine.hpp"
#include "core/float16.hpp"
#include "core/model_shapes.hpp"
#include "core/random.hpp"

namespace distzo2 {
namespace {

const TensorTable& table() {
  static const TensorTable t = tensor_table(model_shape("opt-tiny"));
  return t;
}

const Tensor& tensor(const std::string& name) {
  return table().tensors.at(static_cast<std::size_t>(find_tensor(table(), name)));
}

std::vector<float> values(const Tensor& t, std::uint64_t seed) {
  std::vector<float> out(static_cast<std::size_t>(t.size()));
  random_values(t, seed, 0, out);
  return out;
}

TEST(RandomWeights, a_matrix_is_the_scaled_normal_of_stream_3) {
  const Tensor& fc2 = tensor("model.decoder.layers.1.fc2.weight");
  const std::vector<float> w = values(fc2, 7);
  for (const std::int64_t i : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4097}, fc2.size() - 1})
    EXPECT_EQ(w[static_cast<std::size_t>(i)],
              0.02F * gaussian_at(7, 0, Stream::weights, 0, static_cast<std::uint64_t>(fc2.first + i)));
}

/// Philox4x32-10 of counter (0, 0, 0, 3 << 24) and key 1, worked out with another implementation in Python, Box-Muller
/// in double.
TEST(RandomWeights, the_first_elements_are_known) {
  const Tensor& embedding = table().tensors.front();
  ASSERT_EQ(embedding.first, 0);
  const std::vector<float> w = values(embedding, 1);
  const double known[] = {-0.0105633607, -0.00585386181, 0.0117188734,   0.0244456995,
                          0.00378942916, 0.00310950754,  -0.00764489927, -0.0324697654};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(w[i], known[i], 2e-8) << i;
}

TEST(RandomWeights, have_the_stated_deviation) {
  double sum = 0, squares = 0;
  const std::vector<float> w = values(table().tensors.front(), 3);
  for (const float x : w) sum += x, squares += double{x} * x;
  const auto n = static_cast<double>(w.size());
  EXPECT_NEAR(sum / n, 0.0, 5 * 0.02 / std::sqrt(n));
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 5 * 0.02 / std::sqrt(2 * n));
}

TEST(RandomWeights, norms_are_one_and_biases_zero) {
  for (const float x : values(tensor("model.decoder.layers.0.final_layer_norm.weight"), 5)) EXPECT_EQ(x, 1.0F);
  for (const float x : values(tensor("model.decoder.layers.0.final_layer_norm.bias"), 5)) EXPECT_EQ(x, 0.0F);
  for (const float x : values(tensor("model.decoder.layers.3.fc1.bias"), 5)) EXPECT_EQ(x, 0.0F);
}

TEST(RandomWeights, do_not_depend_on_how_a_tensor_is_cut) {
  const Tensor& fc1 = tensor("model.decoder.layers.2.fc1.weight");
  const std::vector<float> whole = values(fc1, 11);
  for (const std::int64_t cut : {1, 3, 4, 31, 64, 1000}) {
    std::vector<float> cut_up(whole.size());
    for (std::int64_t at = 0; at < fc1.size(); at += cut)
      random_values(fc1, 11, at,
                    std::span(cut_up).subspan(static_cast<std::size_t>(at),
                                              static_cast<std::size_t>(std::min(cut, fc1.size() - at))));
    EXPECT_EQ(cut_up, whole) << cut;
  }
}

}  // namespace
}  // namespace distzo2
