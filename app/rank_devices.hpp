// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "parallel/job.hpp"

namespace distzo2 {

/// In a program for devices, before anything is done with them: chooses this rank's, tells all ranks of it, and refuses
/// two ranks on one unless the deck names that one. Returns its number, or -1 in a program for CPUs. Throws Error
/// (usage) where there is no device. By all ranks.
int choose_device(Job& job, const RunConfig& config);

}  // namespace distzo2
