// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_folder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/checkpoint_writer.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace distzo2;

/// A safetensors file of one float tensor.
std::string one_tensor(const std::string& name, float value) {
  return raw_safetensors("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                         raw_bytes<float>({value}));
}

float read_one(const CheckpointReader& reader, const std::string& name) {
  std::vector<float> value(1);
  reader.read(name, 0, value);
  return value[0];
}

std::string refusal(const TemporaryFolder& folder) {
  return file_error([&] { CheckpointReader{folder.path()}; });
}

TEST(CheckpointReader, follows_the_index_and_not_the_names_of_files) {
  const TemporaryFolder folder;
  folder.write("b.safetensors", one_tensor("x", 1.0F));
  folder.write("a.safetensors", one_tensor("y", 2.0F));
  folder.write("model-00003-of-00003.safetensors", one_tensor("x", 9.0F));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}})");
  const CheckpointReader reader(folder.path());
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(reader.files(), (std::vector{folder.path() / "model.safetensors.index.json",
                                         folder.path() / "b.safetensors", folder.path() / "a.safetensors"}));
  EXPECT_EQ(read_one(reader, "x"), 1.0F);
  EXPECT_EQ(read_one(reader, "y"), 2.0F);
}

TEST(CheckpointReader, finds_names_with_and_without_the_models_prefix) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", raw_safetensors(R"({"decoder.a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                                    R"("model.b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                                                    R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                                                    raw_bytes<float>({1.0F, 2.0F, 3.0F})));
  const CheckpointReader reader(folder.path());
  EXPECT_EQ(read_one(reader, "model.decoder.a"), 1.0F);
  EXPECT_EQ(read_one(reader, "decoder.a"), 1.0F);
  EXPECT_EQ(read_one(reader, "model.b"), 2.0F);  // the exact name comes first
  EXPECT_EQ(read_one(reader, "b"), 3.0F);
}

TEST(CheckpointReader, names_a_missing_tensor_and_a_wrong_shape) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", one_tensor("w", 1.0F));
  const CheckpointReader reader(folder.path());
  expect_contains(file_error([&] { static_cast<void>(reader.info("model.norm.weight")); }),
                  "tensor \"model.norm.weight\" is missing");
  EXPECT_NO_THROW(reader.expect("w", std::vector<std::int64_t>{1}));
  const auto message = file_error([&] { reader.expect("w", std::vector<std::int64_t>{2, 3}); });
  expect_contains(message, "model.safetensors: tensor \"w\" has shape [1], but config.json asks for [2, 3]");
}

TEST(CheckpointReader, names_a_tensor_whose_type_is_no_float) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", raw_safetensors(R"({"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x"));
  const CheckpointReader reader(folder.path());
  expect_contains(file_error([&] { reader.expect("w", std::vector<std::int64_t>{1}); }), "tensor \"w\" has dtype I8");
}

TEST(CheckpointReader, names_a_missing_shard) {
  const TemporaryFolder folder;
  folder.write("a.safetensors", one_tensor("y", 2.0F));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}})");
  const auto message = refusal(folder);
  expect_contains(message,
                  "model.safetensors.index.json: shard \"b.safetensors\", which holds tensor \"x\", is missing");
}

TEST(CheckpointReader, names_a_tensor_that_its_shard_lacks) {
  const TemporaryFolder folder;
  folder.write("a.safetensors", one_tensor("y", 2.0F));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"x": "a.safetensors"}})");
  expect_contains(refusal(folder), "tensor \"x\" is not in \"a.safetensors\"");
}

TEST(CheckpointReader, refuses_an_index_that_leads_out_of_its_folder) {
  const TemporaryFolder folder;
  folder.write("a.safetensors", one_tensor("x", 2.0F));
  for (const std::string shard :
       {"../a.safetensors", "/etc/passwd", "inner/../a.safetensors", "..", ".", "", "a\\\\b", "a\\u0000b"}) {
    folder.write("model.safetensors.index.json", R"({"weight_map": {"x": ")" + shard + "\"}}");
    expect_contains(refusal(folder), "the plain name of a file in the model's folder was expected");
  }
}

TEST(CheckpointReader, refuses_a_malformed_index) {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& text) {
    folder.write("model.safetensors.index.json", text);
    return refusal(folder);
  };
  expect_contains(with("{}"), "\"weight_map\" is missing");
  expect_contains(with(R"({"weight_map": []})"), "\"weight_map\" is []; an object");
  expect_contains(with(R"({"weight_map": {"x": 1}})"), "\"weight_map.x\" is 1; a text");
  expect_contains(with(R"({"weight_map": {"x": "a", "x": "b"}})"), "\"x\" stands twice");
  expect_contains(with("{"), "not valid JSON");
}

TEST(CheckpointReader, answers_pickled_weights_with_the_command_that_converts_them) {
  const TemporaryFolder folder;
  folder.write("pytorch_model-00001-of-00002.bin", "x");
  expect_contains(refusal(folder), "scripts/convert_checkpoint " + folder.path().string());
}

TEST(CheckpointReader, says_what_a_folder_without_weights_lacks) {
  const TemporaryFolder folder;
  expect_contains(refusal(folder), "no weights; model.safetensors, or model.safetensors.index.json");
  expect_contains(file_error([&] { CheckpointReader{folder / "none"}; }), "none: no such folder");
}

TEST(CheckpointReader, names_tensor_and_element_of_a_value_that_is_not_finite) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", one_tensor("w", 1.0F));
  const CheckpointReader reader(folder.path());
  std::vector<float> values(3000, 1.0F);
  EXPECT_NO_THROW(reader.check_finite("w", 0, values));
  values[2100] = std::numeric_limits<float>::quiet_NaN();
  expect_contains(file_error([&] { reader.check_finite("w", 5, values); }), "element 2105 of tensor \"w\" is nan");
}

TEST(CheckpointReader, finds_the_first_value_that_is_not_finite) {
  std::vector<float> values(2050, std::numeric_limits<float>::max());
  EXPECT_EQ(first_non_finite(values), -1);
  EXPECT_EQ(first_non_finite({}), -1);
  values[2049] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_non_finite(values), 2049);
  values[1023] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_non_finite(values), 1023);
  values[0] = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first_non_finite(values), 0);
}

TEST(CheckpointReader, has_a_digest_of_names_types_shapes_and_values_and_not_of_sharding) {
  const auto header = [](const std::string& name, const std::string& shape) {
    return "{\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4]}})";
  };
  const TemporaryFolder folder;
  const auto digest = [&](const std::string& bytes) {
    folder.write("model.safetensors", bytes);
    return CheckpointReader(folder.path()).digest();
  };
  const auto base = digest(raw_safetensors(header("w", "[1]"), "abcd"));
  EXPECT_EQ(digest(raw_safetensors("  " + header("w", "[1]"), "abcd")), base);
  EXPECT_NE(digest(raw_safetensors(header("v", "[1]"), "abcd")), base);
  EXPECT_NE(digest(raw_safetensors(header("w", "[1,1]"), "abcd")), base);
  EXPECT_NE(digest(raw_safetensors(header("w", "[1]"), "abce")), base);
  std::filesystem::rename(folder / "model.safetensors", folder / "s.safetensors");
  folder.write("s.safetensors", raw_safetensors(header("w", "[1]"), "abcd"));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"w": "s.safetensors"}})");
  EXPECT_EQ(CheckpointReader(folder.path()).digest(), base);
}

}  // namespace
