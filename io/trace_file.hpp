// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/lane_trace.hpp"
#include "io/output_file.hpp"

#include <filesystem>
#include <span>
#include <string>

namespace distzo2 {

/// A timeline of the lanes that chrome://tracing, Perfetto and scripts/plot_timeline show: a JSON array of complete
/// events ("ph": "X", in microseconds), a thread a lane, with unit, step and bytes. It is written as it grows: what a
/// killed run leaves is shown too, as these readers need no end of the array. Error (file) where writing fails.
class TraceFile {
public:
  /// A new file, in place of one that stands there.
  explicit TraceFile(const std::filesystem::path& path);

  void append(std::span<const LaneSpan> spans);
  /// Ends the array: the file is valid JSON from here on, and durable. Nothing may be appended after it.
  void close();

private:
  OutputFile file_;
  std::string text_;  // kept for its memory
};

/// Whether a file is what a TraceFile wrote, whole or as a killed run left it.
bool holds_trace(const std::filesystem::path& path);

}  // namespace distzo2
