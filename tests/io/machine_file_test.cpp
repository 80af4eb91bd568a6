// SPDX-License-Identifier: BSD-3-Clause
#include "io/machine_file.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/io/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

json number(double value, const char* source = "data sheet") {
  return {{"value", value}, {"source", source}};
}

json good() {
  return {{"name", "a node"},
          {"nodes", 2},
          {"devices", 0},
          {"cores", 8},
          {"host_memory_gb", number(64)},
          {"z_gnormals_per_s", number(2.5, "measured 2026-11-30")},
          {"memory_gb_per_s", number(20, "assumption: as a neighbour's")}};
}

/// The message that refuses this file.
std::string refusal(const json& value) {
  const TemporaryFolder folder;
  const auto path = folder.write("machine.json", value.dump());
  const std::string message = file_error([&] { read_machine_file(path); });
  expect_contains(message, path.string() + ": key \"");
  return message;
}

std::string refusal_with(const std::string& key, const json& value) {
  json file = good();
  file[key] = value;
  const std::string message = refusal(file);
  expect_contains(message, "\"" + key);
  return message;
}

TEST(MachineFile, reads_numbers_in_their_units) {
  const TemporaryFolder folder;
  json file = good();
  file["network_latency_us"] = number(2.5);
  file["gemm_bf16_gflop_per_s"] = number(312000);
  const MachineFile machine = read_machine_file(folder.write("machine.json", file.dump()));
  EXPECT_EQ(machine.name, "a node");
  EXPECT_EQ(machine.rates.nodes, 2);
  EXPECT_EQ(machine.rates.cores, 8);
  EXPECT_DOUBLE_EQ(machine.rates.host_bytes, 64e9);
  EXPECT_DOUBLE_EQ(machine.rates.normals, 2.5e9);
  EXPECT_DOUBLE_EQ(machine.rates.gemm_bf16_flop, 3.12e14);
  EXPECT_DOUBLE_EQ(machine.rates.network_latency_s, 2.5e-6);
  EXPECT_EQ(machine.rates.upload_bytes, 0);
  EXPECT_EQ(machine.sources.at("z_gnormals_per_s"), "measured 2026-11-30");
}

TEST(MachineFile, is_the_same_once_written_and_read) {
  MachineFile machine;
  machine.name = "all numbers";
  machine.note = "each of its own";
  machine.rates.nodes = 3;
  machine.rates.devices = 4;
  machine.rates.cores = 64;
  double value = 1.1;
  for (const MachineNumber& n : machine_numbers()) {
    machine.rates.*n.member = value * n.unit;
    machine.sources[n.key] = "assumption: " + std::string(n.key);
    value += 1.1;
  }
  const TemporaryFolder folder;
  const MachineFile read = read_machine_file(folder.write("machine.json", machine_text(machine)));
  EXPECT_EQ(read.name, machine.name);
  EXPECT_EQ(read.note, machine.note);
  EXPECT_EQ(read.rates.devices, 4);
  EXPECT_EQ(read.sources, machine.sources);
  for (const MachineNumber& n : machine_numbers())
    EXPECT_DOUBLE_EQ(read.rates.*n.member, machine.rates.*n.member) << n.key;
  EXPECT_EQ(machine_text(read), machine_text(machine));
}

TEST(MachineFile, refuses_what_it_does_not_know_and_says_what_it_does) {
  expect_contains(refusal_with("uplaod_gb_per_s", number(30)), "did you mean \"upload_gb_per_s\"?");
  const std::string far = refusal_with("colour", "blue");
  expect_contains(far, "there is no such key; accepted: ");
  expect_contains(far, "nvlink_gb_per_s");
  expect_contains(refusal_with("upload_gb_per_s", {{"value", 3}, {"source", "data sheet"}, {"unit", "GB"}}),
                  "upload_gb_per_s.unit");
}

TEST(MachineFile, refuses_values_out_of_range_or_of_another_type) {
  expect_contains(refusal_with("nodes", 0), "an integer from 1 to 1000000 was expected");
  expect_contains(refusal_with("devices", 65), "an integer from 0 to 64 was expected");
  expect_contains(refusal_with("cores", 1.5), "an integer from 1 to 65536 was expected");
  expect_contains(refusal_with("name", ""), "a text of one line was expected");
  expect_contains(refusal_with("upload_gb_per_s", 30), "an object {...} was expected");
  expect_contains(refusal_with("upload_gb_per_s", {{"value", "30"}, {"source", "data sheet"}}),
                  "a number was expected");
  expect_contains(refusal_with("upload_gb_per_s", number(-1)), "a number from 0.001 to 100000 was expected");
  expect_contains(refusal_with("upload_gb_per_s", number(1e9)), "GB/s from host memory to the device");
  expect_contains(refusal_with("upload_gb_per_s", json::object({{"value", 30}})),
                  "\"upload_gb_per_s.source\" is missing");
}

TEST(MachineFile, refuses_a_number_from_nowhere) {
  for (const char* source : {"", "measured", "measured yesterday", "measured 2026-13-01", "measured 2026-1-1",
                             "data sheets", "assumption:", "guess"})
    expect_contains(refusal_with("upload_gb_per_s", number(30, source)), "\"measured YYYY-MM-DD\"");
  EXPECT_TRUE(is_machine_source("data sheet: PCIe 4.0, 16 lanes"));
}

TEST(MachineFile, refuses_a_machine_without_what_every_prediction_needs) {
  for (const char* key :
       {"name", "nodes", "devices", "cores", "host_memory_gb", "z_gnormals_per_s", "memory_gb_per_s"}) {
    json file = good();
    file.erase(key);
    expect_contains(refusal(file), std::string("\"") + key + "\" is missing");
  }
  json file = good();
  file["devices"] = 1;
  expect_contains(refusal(file), "\"device_memory_gb\" is missing");
}

}  // namespace
}  // namespace distzo2
