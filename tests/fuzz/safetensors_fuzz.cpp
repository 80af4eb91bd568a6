// SPDX-License-Identifier: BSD-3-Clause
#include "io/safetensors.hpp"

#include "core/tensor_table.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_tensors.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/file_bytes.hpp"

#include <algorithm>
#include <array>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_elements = 4096;  // of a tensor, that are read

void read_tensors(const CheckpointReader& reader) {
  std::vector<float> values;
  for (const std::string& name : reader.names()) {
    const TensorInfo& info = reader.info(name);
    values.resize(static_cast<std::size_t>(std::min(info.elements, most_elements)));
    const std::int64_t offset = info.elements - std::ssize(values);
    accepted([&] {
      reader.read(name, offset, values);
      reader.check_finite(name, offset, values);
    });
  }
  reader.digest();
  static const TensorTable table = make_tensor_table({{{"model.embed_tokens.weight", 2, 3, true}},
                                                      {{"model.layers.0.w", 3, 1, true}, {"model.layers.0.b", 1, 3}},
                                                      {{"model.norm.weight", 1, 3}}});
  ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.tied_head = true;
  check_tensors(reader, config, table);
}

bool read_file(std::string_view input) {
  static const fs::path folder = fuzz_folder("safetensors");
  write_bytes(folder / "model.safetensors", input);
  return accepted([&] { read_tensors(CheckpointReader(folder)); });
}

/// The index is hostile, the shards beside it are good.
bool read_index(std::string_view input) {
  static const fs::path folder = [] {
    const fs::path made = fuzz_folder("safetensors_index");
    fs::create_directories(made / "inner");
    for (const char* name : {"a.safetensors", "b.safetensors", "inner/c.safetensors", "../d.safetensors"}) {
      const char tensor = fs::path(name).stem().string()[0];
      write_bytes(made / name, raw_safetensors(std::string("{\"") + tensor +
                                                   R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                                               raw_bytes<float>({1.0F})));
    }
    return made;
  }();
  write_bytes(folder / "model.safetensors.index.json", input);
  return accepted([&] {
    const CheckpointReader reader(folder);
    for (const fs::path& file : reader.files())
      if (fs::canonical(file).parent_path() != fs::canonical(folder)) found(file.string() + ": outside the folder");
    accepted([&] { read_tensors(reader); });  // which these few tensors are refused by
  });
}

const RegisteredTarget file_target("safetensors", read_file);
const RegisteredTarget index_target("safetensors_index", read_index);

}  // namespace
}  // namespace distzo2
