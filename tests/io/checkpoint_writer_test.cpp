// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_writer.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "io/checkpoint_folder.hpp"
#include "io/output_file.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace distzo2;
namespace fs = std::filesystem;

const char* const base_config =
    R"({"zeta": 1, "architectures": ["LlamaForCausalLM"], "torch_dtype": "float32", "rms_norm_eps": 1e-05})";

void write_base(const TemporaryFolder& folder) {
  folder.write("base/config.json", base_config);
  folder.write("base/tokenizer.json", "{\"a\": \"\xc3\xa9\"}");
  folder.write("base/merges.txt", "a b\n");
  folder.write("base/pytorch_model.bin", "never copied");
}

bool anything_beside(const fs::path& target) {
  return std::ranges::any_of(fs::directory_iterator(target.parent_path()), [&](const fs::directory_entry& entry) {
    return is_made_beside(target, entry.path().filename().string());
  });
}

TEST(CheckpointWriter, writes_one_file_and_copies_what_makes_the_folder_loadable) {
  const TemporaryFolder folder;
  write_base(folder);
  CheckpointWriter writer(folder / "out/", folder / "base", {{"a", DType::f32, {2, 2}}, {"b", DType::f32, {1}}});
  writer.write("a", std::vector<float>{1.0F, 2.0F, 3.0F});
  writer.write("a", std::vector<float>{4.0F});
  writer.write("b", std::vector<float>{5.0F});
  EXPECT_FALSE(fs::exists(folder / "out"));
  writer.finish();
  EXPECT_FALSE(anything_beside(folder / "out"));
  EXPECT_EQ(file_bytes(folder / "out/tokenizer.json"), "{\"a\": \"\xc3\xa9\"}");
  EXPECT_EQ(file_bytes(folder / "out/merges.txt"), "a b\n");
  EXPECT_FALSE(fs::exists(folder / "out/pytorch_model.bin"));
  EXPECT_FALSE(fs::exists(folder / "out/model.safetensors.index.json"));
  const CheckpointReader reader(folder / "out");
  std::vector<float> a(4);
  reader.read("a", 0, a);
  EXPECT_EQ(a, (std::vector<float>{1.0F, 2.0F, 3.0F, 4.0F}));
  EXPECT_EQ(reader.info("a").shape, (std::vector<std::int64_t>{2, 2}));
}

TEST(CheckpointWriter, brings_the_type_in_config_json_up_to_date_and_keeps_the_rest_in_order) {
  const TemporaryFolder folder;
  write_base(folder);
  const auto config_for = [&](DType dtype) {
    CheckpointWriter writer(folder / "out", folder / "base", {{"a", dtype, {1}}}, {.replace = true});
    writer.write("a", std::vector<float>{1.0F});
    writer.finish();
    return file_bytes(folder / "out/config.json");
  };
  EXPECT_EQ(
      config_for(DType::bf16),
      "{\n  \"zeta\": 1,\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n  \"torch_dtype\": \"bfloat16\",\n"
      "  \"rms_norm_eps\": 1e-05\n}\n");
  folder.write("base/config.json", R"({"dtype": "bfloat16"})");
  EXPECT_EQ(config_for(DType::f16), "{\n  \"dtype\": \"float16\"\n}\n");
  folder.write("base/config.json", "{}");
  EXPECT_EQ(config_for(DType::f32), "{\n  \"torch_dtype\": \"float32\"\n}\n");
}

TEST(CheckpointWriter, writes_shards_of_at_most_the_given_size_with_an_index) {
  const TemporaryFolder folder;
  write_base(folder);
  const std::vector<TensorDeclaration> tensors = {{"a", DType::f32, {2}},
                                                  {"b", DType::f32, {2}},
                                                  {"big", DType::f32, {9}},
                                                  {"none", DType::f32, {0}},
                                                  {"c", DType::f32, {4}}};
  CheckpointWriter writer(folder / "out", folder / "base", tensors, {.max_shard_bytes = 16});
  float next = 0.0F;
  for (const auto& tensor : tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape[0]));
    for (float& v : values) {
      v = next++;
    }
    writer.write(tensor.name, values);
  }
  writer.finish();
  const auto index = nlohmann::json::parse(file_bytes(folder / "out/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"].get<int>(), 68);
  EXPECT_EQ(index["weight_map"]["a"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["b"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["big"], "model-00002-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["none"], "model-00002-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["c"], "model-00003-of-00003.safetensors");
  const CheckpointReader reader(folder / "out");
  EXPECT_EQ(reader.names().size(), 5U);
  next = 0.0F;
  for (const auto& tensor : tensors) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape[0]));
    reader.read(tensor.name, 0, values);
    for (const float v : values) {
      EXPECT_EQ(v, next++);
    }
  }
}

TEST(CheckpointWriter, leaves_nothing_behind_and_touches_nothing_where_it_is_given_up) {
  const TemporaryFolder folder;
  write_base(folder);
  folder.write("out/config.json", "old");
  {
    CheckpointWriter writer(folder / "out", folder / "base", {{"a", DType::f32, {2}}}, {.replace = true});
    writer.write("a", std::vector<float>{1.0F});
    EXPECT_THROW(writer.finish(), Error);
  }
  EXPECT_FALSE(anything_beside(folder / "out"));
  EXPECT_EQ(file_bytes(folder / "out/config.json"), "old");
}

TEST(CheckpointWriter, replaces_only_a_model_folder_and_only_when_asked) {
  const TemporaryFolder folder;
  write_base(folder);
  const auto attempt = [&](const char* name, bool replace) {
    CheckpointWriter writer(folder / name, folder / "base", {{"a", DType::f32, {1}}}, {.replace = replace});
    writer.write("a", std::vector<float>{1.0F});
    writer.finish();
  };
  fs::create_directories(folder / "empty");
  EXPECT_NO_THROW(attempt("empty", false));
  expect_contains(file_error([&] { attempt("empty", false); }, ExitCode::usage),
                  "empty: exists already; name another folder");
  folder.write("empty/stale", "x");
  EXPECT_NO_THROW(attempt("empty", true));
  EXPECT_FALSE(fs::exists(folder / "empty/stale"));
  EXPECT_FALSE(anything_beside(folder / "empty"));
  folder.write("precious/letter.txt", "x");
  expect_contains(file_error([&] { attempt("precious", true); }), "is no model folder");
  expect_contains(file_error([&] { attempt("base", true); }), "is the base model's own folder");
  folder.write("file", "x");
  expect_contains(file_error([&] { attempt("file", true); }), "is no folder");
}

TEST(CheckpointWriter, names_a_base_folder_that_lacks_its_configuration) {
  const TemporaryFolder folder;
  expect_contains(file_error([&] {
                    CheckpointWriter(folder / "out", folder / "base", {{"a", DType::f32, {1}}});
                  }),
                  "config.json: no such file");
  EXPECT_FALSE(anything_beside(folder / "out"));
}

TEST(CheckpointWriter, reports_a_disk_that_takes_no_more_and_frees_what_it_took) {
  const TemporaryFolder folder;
  write_base(folder);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string message;
  {
    CheckpointWriter writer(folder / "out", folder / "base", {{"a", DType::f32, {4096}}});
    const rlimit small{8192, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    message = file_error([&] { writer.write("a", std::vector<float>(4096)); });
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  }
  std::signal(SIGXFSZ, handler);
  expect_contains(message, "model.safetensors: cannot be written: File too large");
  EXPECT_FALSE(anything_beside(folder / "out"));
}

}  // namespace
