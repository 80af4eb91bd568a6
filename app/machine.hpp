// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace distzo2 {

/// Host, processor, cores and memory of this machine, as results name it.
nlohmann::ordered_json machine_object();

}  // namespace distzo2
