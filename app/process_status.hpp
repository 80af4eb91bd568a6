// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace distzo2 {

/// The number after a key, "PPid:", that Linux tells of a process, "self" or its id; 0 where it tells none.
inline std::uint64_t process_status(const std::string& process, std::string_view key) {
  std::ifstream in("/proc/" + process + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::stoull(line.substr(key.size()));
  return 0;
}

}  // namespace distzo2
