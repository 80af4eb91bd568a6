// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/on_ranks.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {

/// The tiny project whose model has so many layers, its two in turn: more than half of its parameters may be missing in
/// memory, and what streams still fits.
class DeepProject : public TinyProject {
public:
  explicit DeepProject(int layers) {
    const std::string file = text_of_file(path("model/model.safetensors"));
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
    const nlohmann::json header = nlohmann::json::parse(file.substr(8, header_bytes));
    nlohmann::json tensors = nlohmann::json::object();
    std::string data;
    const auto add = [&](const std::string& name, nlohmann::json tensor) {
      const auto begin = tensor.at("data_offsets").at(0).get<std::size_t>();
      const auto end = tensor.at("data_offsets").at(1).get<std::size_t>();
      tensor["data_offsets"] = {data.size(), data.size() + end - begin};
      data += file.substr(8 + header_bytes + begin, end - begin);
      tensors[name] = tensor;
    };
    for (const auto& [name, tensor] : header.items()) {
      const std::size_t at = name.find(".layers.");
      if (name == "__metadata__") continue;
      if (at == std::string::npos) {
        add(name, tensor);
        continue;
      }
      for (int layer = name[at + 8] - '0'; layer < layers; layer += 2)
        add(name.substr(0, at + 8) + std::to_string(layer) + name.substr(at + 9), tensor);
    }
    const std::string text = tensors.dump();
    header_bytes = text.size();
    write("model/model.safetensors", std::string(reinterpret_cast<const char*>(&header_bytes), 8) + text + data);
    nlohmann::json config = nlohmann::json::parse(text_of_file(path("model/config.json")));
    config["num_hidden_layers"] = layers;
    write("model/config.json", config.dump());
  }
};

/// What a run of these options takes on one rank, all its parameters counted as `parts` hundredths.
inline std::uint64_t host_bytes_with(const TinyProject& project, const std::string& deck,
                                     const std::vector<std::string>& sets, int parts) {
  std::vector<std::string> words{"plan", deck, "--json"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const nlohmann::json plan = project.json(words);
  std::uint64_t parameters = 0;
  for (const char* tier : {"resident", "host"})
    parameters += plan.at("tiers").at(tier).at("bytes").get<std::uint64_t>();
  return plan.at("host").at("bytes").get<std::uint64_t>() - parameters * static_cast<std::uint64_t>(100 - parts) / 100;
}

/// The key of the deck for so many bytes.
inline std::string host_budget(std::uint64_t bytes) {
  return "memory/host budget=" + std::to_string(bytes) + " B";
}

/// Goes on with the run of a folder, or begins it; 0 ranks: without MPI. Returns what it said.
inline std::string go_on(const TinyProject& project, const std::string& deck, const std::string& folder,
                         std::vector<std::string> sets, int ranks, int exit_code = 0) {
  sets.emplace_back("output/folder=" + folder);
  const ProgramResult result =
      project.run(train_words(deck, sets, {"--resume", "auto"}), ranks == 0 ? ProgramOptions{} : on_ranks(ranks));
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  return result.out;
}

}  // namespace distzo2
