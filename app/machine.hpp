// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace distzo2 {

/// Host, processor, cores and memory of this machine, as results name it.
nlohmann::ordered_json machine_object();

/// What this process computes with: "fp32, 2 threads, instruction set avx512, GEMM oneDNN 3.7.1".
std::string describe_compute(Compute compute);

}  // namespace distzo2
