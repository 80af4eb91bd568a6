// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/machine.hpp"
#include "app/machine_probe.hpp"
#include "io/machine_file.hpp"
#include "io/output_file.hpp"
#include "io/units.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ctime>

namespace distzo2 {
namespace {

constexpr int repeats = 7;
constexpr double disk_s = 2;

}  // namespace

const char* const bench_machine_text =
    "what this machine computes and moves, as the file that plan --machine takes: products in fp32 and bf16, "
    "attention, "
    "z and making weights in steps of a small model, copies between buffers, and a disk; with the threads that a run "
    "would have, in well under a minute";

ExitCode bench_machine_command(const BenchMachineOptions& options) {
  // 1. What it is.
  const nlohmann::ordered_json here = machine_object();
  MachineFile machine;
  machine.name = fmt::format("{}, {} threads", here.at("processor").get<std::string>(), here.at("threads").get<int>());
  machine.note = fmt::format("written by distzo2 bench machine; {}", describe_compute(Compute::fp32));
  MachineRates& rates = machine.rates;
  rates.cores = here.at("threads").get<int>();
  rates.host_bytes = here.at("memory_bytes").get<double>();

  // 2. What it does.
  const PassRates fp32 = measure_passes(Compute::fp32, repeats), bf16 = measure_passes(Compute::bf16, repeats);
  rates.gemm_fp32_flop = fp32.gemm_flop;
  rates.gemm_bf16_flop = bf16.gemm_flop;
  rates.attention_flop = fp32.attention_flop;
  rates.normals = fp32.normals;
  rates.memory_bytes = fp32.memory_bytes;
  rates.upload_bytes = rates.download_bytes = measure_copies();
  measure_disk_rates(rates, options.scratch, disk_s);

  // 3. The file.
  const std::string source = fmt::format("measured {:%Y-%m-%d}", fmt::localtime(std::time(nullptr)));
  for (const MachineNumber& n : machine_numbers())
    if (rates.*n.member > 0) machine.sources[n.key] = source;
  if (options.output.empty()) {
    fmt::print("{}", machine_text(machine));
    return ExitCode::done;
  }
  replace_text_file(options.output, machine_text(machine));
  for (const MachineNumber& n : machine_numbers())
    if (rates.*n.member > 0) fmt::print("{:<24} {:>10.4g}   {}\n", n.key, rates.*n.member / n.unit, n.what);
  fmt::print("{}\n", options.output.string());
  return ExitCode::done;
}

}  // namespace distzo2
