// SPDX-License-Identifier: BSD-3-Clause
#include "io/trace_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string_view>

namespace distzo2 {
namespace {

constexpr std::size_t text_bytes = std::size_t{64} << 10;

constexpr double us_per_s = 1e6;

/// What every file begins with.
constexpr std::string_view first_event =
    "[\n{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": \"distzo2\"}}";

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& path) : file_(path) {
  text_.reserve(text_bytes + 512);
  text_ = first_event;
  auto out = std::back_inserter(text_);
  for (int lane = 0; lane < lane_kinds; ++lane) {
    fmt::format_to(
        out, ",\n{{\"ph\": \"M\", \"pid\": 1, \"tid\": {}, \"name\": \"thread_name\", \"args\": {{\"name\": \"{}\"}}}}",
        lane + 1, name_of(static_cast<LaneKind>(lane)));
    fmt::format_to(out,
                   ",\n{{\"ph\": \"M\", \"pid\": 1, \"tid\": {0}, \"name\": \"thread_sort_index\", \"args\": "
                   "{{\"sort_index\": {0}}}}}",
                   lane + 1);
  }
  file_.write(text_);
}

void TraceFile::append(std::span<const LaneSpan> spans) {
  text_.clear();
  auto out = std::back_inserter(text_);
  for (const LaneSpan& s : spans) {
    out =
        fmt::format_to(out, ",\n{{\"ph\": \"X\", \"pid\": 1, \"tid\": {}, \"name\": \"", static_cast<int>(s.lane) + 1);
    out = s.unit < 0 ? fmt::format_to(out, "{}", name_of(s.lane)) : fmt::format_to(out, "unit {}", s.unit);
    out = fmt::format_to(
        out, "\", \"ts\": {:.3f}, \"dur\": {:.3f}, \"args\": {{\"unit\": {}, \"step\": {}, \"bytes\": {}}}}}",
        s.begin * us_per_s, (s.end - s.begin) * us_per_s, s.unit, s.step, s.bytes);
    if (text_.size() < text_bytes) continue;
    file_.write(text_);
    text_.clear();
  }
  file_.write(text_);
}

void TraceFile::close() {
  file_.write("\n]\n");
  file_.finish();
}

bool holds_trace(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string begin(first_event.size(), '\0');
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  return first_event.starts_with(begin);
}

}  // namespace distzo2
