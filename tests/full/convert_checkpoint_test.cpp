// SPDX-License-Identifier: BSD-3-Clause
// scripts/convert_checkpoint gives back the weights that were saved as .bin. Needs the Python that DISTZO2_PYTHON names
// (default python3) to have torch and numpy; says so where it has not.
#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace distzo2 {
namespace {

/// Turns model.safetensors of the folder in argv[1] into two shards .bin with their index.
constexpr const char* split_into_bins = R"(
import json, os, struct, sys, torch
folder = sys.argv[1]
path = os.path.join(folder, "model.safetensors")
data = open(path, "rb").read()
size, = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + size])
header.pop("__metadata__", None)
tensors = {}
for name, entry in header.items():
    assert entry["dtype"] == "F32"
    begin, end = (8 + size + offset for offset in entry["data_offsets"])
    tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(entry["shape"])
names = sorted(tensors)
shards = [names[::2], names[1::2]]
weight_map = {}
for i, shard in enumerate(shards):
    file = f"pytorch_model-{i + 1:05}-of-00002.bin"
    torch.save({name: tensors[name] for name in shard}, os.path.join(folder, file))
    weight_map.update({name: file for name in shard})
json.dump({"metadata": {}, "weight_map": weight_map}, open(os.path.join(folder, "pytorch_model.bin.index.json"), "w"))
os.remove(path)
)";

TEST(ConvertCheckpoint, gives_back_the_weights_that_were_saved_as_bin) {
  const char* named = std::getenv("DISTZO2_PYTHON");
  const std::string python = named == nullptr ? "python3" : named;
  const TinyProject project("llama_untied");
  // The wrapper runs in place of the program, whose path it ignores.
  const auto python_says = [&](const std::string& code, const std::string& argument) {
    return project.run({}, {.wrapper = {"sh", "-c", "exec \"$1\" -c \"$2\" \"$3\"", "sh", python, code, argument}});
  };
  if (python_says("import numpy, torch", "").exit_code != 0) {
    std::cout << "left out: " << python << " has no torch with numpy; DISTZO2_PYTHON can name one that has\n";
    return;
  }
  const std::string folder = project.path("model").string();
  const auto evaluation = [&] { return project.run({"evaluate", "deck.yaml", "--json"}); };
  const ProgramResult before = evaluation();
  ASSERT_EQ(before.exit_code, 0) << before.err;
  const ProgramResult split = python_says(split_into_bins, folder);
  ASSERT_EQ(split.exit_code, 0) << split.err;
  const ProgramResult refused = evaluation();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_NE(refused.err.find("scripts/convert_checkpoint"), std::string::npos) << refused.err;
  const std::string script = (test_paths::sources / "scripts/convert_checkpoint").string();
  const ProgramResult converted =
      project.run({}, {.wrapper = {"sh", "-c", "exec \"$1\" \"$2\" --python \"$3\"", "sh", script, folder, python}});
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  const ProgramResult after = evaluation();
  ASSERT_EQ(after.exit_code, 0) << after.err;
  for (const char* key : {"theta_digest", "loss"})
    EXPECT_EQ(nlohmann::json::parse(after.out).at(key), nlohmann::json::parse(before.out).at(key)) << key;
}

}  // namespace
}  // namespace distzo2
