// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/cost_model.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// A number of a machine file: its key ("upload_gb_per_s"), and how it becomes a member of MachineRates.
struct MachineNumber {
  const char* key;
  double MachineRates::*member;
  double unit;         // one of the file's is so many of the member's
  double least, most;  // in the file's unit
  const char* what;
};
const std::vector<MachineNumber>& machine_numbers();

/// A machine with where each of its numbers comes from.
struct MachineFile {
  std::string name, note;  // one line each; the note may be empty
  MachineRates rates;
  std::map<std::string, std::string> sources;  // of each number that is given, by key
};

/// "measured 2026-11-30", "data sheet" or "assumption", the last two with more after a colon where there is more to
/// say.
bool is_machine_source(std::string_view text);

/// JSON: {"name": ..., "note": ..., "nodes": 1, "devices": 4, "cores": 64, "KEY": {"value": 312, "source": SOURCE},
/// ...}. Throws Error (file) naming the file, the key, what stands there and what is accepted; unknown keys are refused
/// with the nearest name.
MachineFile read_machine_file(const std::filesystem::path& path);

/// The same as text, which reads as the same machine. Numbers that are 0 are left out.
std::string machine_text(const MachineFile& machine);

/// The keys of these members, as a message lists them: "\"nvlink_gb_per_s\", \"z_gnormals_per_s\"".
std::string machine_keys(const std::vector<double MachineRates::*>& members);

}  // namespace distzo2
