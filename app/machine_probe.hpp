// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/cost_model.hpp"
#include "core/precision.hpp"

#include <filesystem>

namespace distzo2 {

/// Rates of this machine's cores in steps of a small model: products in a compute precision with what becomes of them,
/// attention, z, and making weights. What threads wait for each other counts in products and weights. Each rate is what
/// the cost model's own count of such a step's work makes of the time of that part: medians over `repeats` steps.
struct PassRates {
  double gemm_flop = 0, attention_flop = 0, normals = 0, memory_bytes = 0;
};
PassRates measure_passes(Compute compute, int repeats);

/// Bytes a second that a lane's thread copies while another one copies as well, as upload and write back do.
double measure_copies();

/// Fills in the three rates of a folder's disk, each measured for about `seconds` with the requests of a store.
void measure_disk_rates(MachineRates& rates, const std::filesystem::path& folder, double seconds);

}  // namespace distzo2
