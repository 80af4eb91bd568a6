// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/models/family.hpp"

namespace distzo2 {

const Family& opt_family();
const Family& llama_family();
const Family& qwen3_family();

}  // namespace distzo2
