// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/parameter_store.hpp"
#include "core/trajectory_record.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace distzo2 {

/// theta's digests after each of these numbers of steps, which ascend, from theta_0 in a store without records: one
/// pass over the parameters, on all threads. A chunk stays in a thread's cache while all records are applied to it, and
/// a few chunks a thread are all the memory that it takes. `progress` (elements done, in all) may be null; it is called
/// from the threads, one at a time.
std::vector<std::uint64_t> replayed_digests(
    const ParameterStore& theta0, std::span<const StepRecord> records, std::span<const std::uint32_t> steps,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress = nullptr);

}  // namespace distzo2
