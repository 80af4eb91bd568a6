// SPDX-License-Identifier: BSD-3-Clause
#include "io/machine_file.hpp"

#include "io/json_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace distzo2 {
namespace {

constexpr double giga = 1e9;
constexpr std::size_t most_file_bytes = std::size_t{1} << 20;
constexpr std::int64_t most_nodes = 1'000'000, most_devices = 64, most_cores = 65536;
constexpr const char* accepted_sources =
    "\"measured YYYY-MM-DD\", \"data sheet\" or \"assumption\" is accepted, the last two with \": ...\" after them";

bool is_date(std::string_view text) {
  if (text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i == 4 || i == 7 ? text[i] != '-' : std::isdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  const auto number = [&](std::size_t from) { return (text[from] - '0') * 10 + text[from + 1] - '0'; };
  return number(5) >= 1 && number(5) <= 12 && number(8) >= 1 && number(8) <= 31;
}

std::set<std::string> accepted_keys() {
  std::set<std::string> keys{"name", "note", "nodes", "devices", "cores"};
  for (const MachineNumber& n : machine_numbers()) keys.insert(n.key);
  return keys;
}

void refuse_unknown(const JsonObject& object, const std::set<std::string>& accepted) {
  for (const auto& item : object.raw().items()) {
    if (accepted.contains(item.key())) continue;
    const std::string near = nearest_name(item.key(), accepted);
    object.refuse(item.key(), fmt::format("there is no such key{}; accepted: {}",
                                          near.empty() ? near : fmt::format("; did you mean \"{}\"?", near),
                                          fmt::join(accepted, ", ")));
  }
}

std::string one_line(const JsonObject& file, const std::string& key) {
  const std::string text = file.string(key);
  if (text.empty() || text.find('\n') != std::string::npos) file.refuse(key, "a text of one line was expected");
  return text;
}

void read_number(const JsonObject& file, const MachineNumber& n, MachineFile& machine) {
  if (!file.present(n.key)) return;
  const JsonObject number = file.object(n.key);
  refuse_unknown(number, {"value", "source"});
  const double value = number.number("value");
  if (value < n.least || value > n.most)
    number.refuse("value", fmt::format("a number from {} to {} was expected ({})", n.least, n.most, n.what));
  const std::string source = number.string("source");
  if (!is_machine_source(source)) number.refuse("source", accepted_sources);
  machine.rates.*n.member = value * n.unit;
  machine.sources[n.key] = source;
}

}  // namespace

const std::vector<MachineNumber>& machine_numbers() {
  using M = MachineRates;
  static const std::vector<MachineNumber> numbers{
      {"host_memory_gb", &M::host_bytes, giga, 0.1, 1e6, "GB of a node"},
      {"device_memory_gb", &M::device_bytes, giga, 0.1, 1e5, "GB of a device"},
      {"gemm_fp32_gflop_per_s", &M::gemm_fp32_flop, giga, 0.01, 1e8, "GF/s of products with fp32 inputs"},
      {"gemm_bf16_gflop_per_s", &M::gemm_bf16_flop, giga, 0.01, 1e8, "GF/s of products with bf16 inputs"},
      {"gemm_fp16_gflop_per_s", &M::gemm_fp16_flop, giga, 0.01, 1e8, "GF/s of products with fp16 inputs"},
      {"attention_gflop_per_s", &M::attention_flop, giga, 0.01, 1e8, "GF/s of attention; left out: as products"},
      {"z_gnormals_per_s", &M::normals, giga, 1e-4, 1e6, "10^9 normal variates a second"},
      {"memory_gb_per_s", &M::memory_bytes, giga, 0.01, 1e6, "GB/s of making weights: the memory's, where that binds"},
      {"upload_gb_per_s", &M::upload_bytes, giga, 0.001, 1e5, "GB/s from host memory to the device or its buffers"},
      {"download_gb_per_s", &M::download_bytes, giga, 0.001, 1e5, "GB/s back"},
      {"nvlink_gb_per_s", &M::nvlink_bytes, giga, 0.001, 1e5, "GB/s into a device from those of its node"},
      {"network_latency_us", &M::network_latency_s, 1e-6, 0.01, 1e6, "microseconds between nodes"},
      {"network_gb_per_s", &M::network_bytes, giga, 1e-4, 1e5, "GB/s into a node"},
      {"disk_read_gb_per_s", &M::disk_read_bytes, giga, 1e-4, 1e5, "GB/s of a node's disk, reading alone"},
      {"disk_write_gb_per_s", &M::disk_write_bytes, giga, 1e-4, 1e5, "GB/s, writing alone"},
      {"disk_mixed_gb_per_s", &M::disk_mixed_bytes, giga, 1e-4, 1e5, "GB/s of both, as much read as written"},
  };
  return numbers;
}

bool is_machine_source(std::string_view text) {
  constexpr std::string_view measured = "measured ";
  if (text.starts_with(measured)) return is_date(text.substr(measured.size()));
  return std::ranges::any_of(std::initializer_list<std::string_view>{"data sheet", "assumption"},
                             [&](std::string_view word) {
                               if (!text.starts_with(word)) return false;
                               const std::string_view rest = text.substr(word.size());
                               return rest.empty() || (rest.starts_with(": ") && rest.size() > 2);
                             });
}

MachineFile read_machine_file(const std::filesystem::path& path) {
  const nlohmann::json value = read_json_file(path, {.max_bytes = most_file_bytes});
  const JsonObject file(value, path.string());
  refuse_unknown(file, accepted_keys());
  MachineFile machine;
  machine.name = one_line(file, "name");
  if (file.present("note")) machine.note = one_line(file, "note");
  machine.rates.nodes = static_cast<int>(file.integer("nodes", 1, most_nodes));
  machine.rates.devices = static_cast<int>(file.integer("devices", 0, most_devices));
  machine.rates.cores = static_cast<int>(file.integer("cores", 1, most_cores));
  for (const MachineNumber& n : machine_numbers()) read_number(file, n, machine);

  // What every prediction needs.
  const auto need = [&](const char* key, double MachineRates::*member) {
    if (machine.rates.*member <= 0) file.refuse(key, R"({"value": ..., "source": ...} is required)");
  };
  need("host_memory_gb", &MachineRates::host_bytes);
  need("z_gnormals_per_s", &MachineRates::normals);
  need("memory_gb_per_s", &MachineRates::memory_bytes);
  if (machine.rates.devices > 0) need("device_memory_gb", &MachineRates::device_bytes);
  return machine;
}

std::string machine_text(const MachineFile& machine) {
  nlohmann::ordered_json file{{"name", machine.name}};
  if (!machine.note.empty()) file["note"] = machine.note;
  file["nodes"] = machine.rates.nodes;
  file["devices"] = machine.rates.devices;
  file["cores"] = machine.rates.cores;
  for (const MachineNumber& n : machine_numbers())
    if (const double value = machine.rates.*n.member; value > 0)
      file[n.key] = {{"value", value / n.unit}, {"source", machine.sources.at(n.key)}};
  return json_text(file) + "\n";
}

std::string machine_keys(const std::vector<double MachineRates::*>& members) {
  std::vector<std::string> keys;
  for (const MachineNumber& n : machine_numbers())
    if (std::ranges::find(members, n.member) != members.end()) keys.push_back(fmt::format("\"{}\"", n.key));
  return fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace distzo2
