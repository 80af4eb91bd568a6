// SPDX-License-Identifier: BSD-3-Clause
#include "io/trace_file.hpp"

#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace distzo2 {
namespace {

const std::vector<LaneSpan> first_step = {{LaneKind::read, 3, 7, 0.5, 0.75, 4096},
                                          {LaneKind::compute, -1, 7, 0.75, 1.0, 0}};
const std::vector<LaneSpan> second_step = {{LaneKind::write, 2, 8, 1e6, 1e6 + 1e-6, std::uint64_t{1} << 40}};

std::vector<nlohmann::json> events(const nlohmann::json& trace, const char* kind) {
  std::vector<nlohmann::json> found;
  for (const auto& e : trace)
    if (e["ph"] == kind) found.push_back(e);
  return found;
}

TEST(TraceFile, writes_spans_as_complete_events_in_microseconds) {
  const TemporaryFolder folder;
  TraceFile file(folder / "trace.json");
  file.append(first_step);
  file.append({});
  file.append(second_step);
  file.close();
  const auto trace = nlohmann::json::parse(file_bytes(folder / "trace.json"));
  const auto spans = events(trace, "X");
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0],
            nlohmann::json::parse(R"({"ph": "X", "pid": 1, "tid": 1, "name": "unit 3", "ts": 500000.0, "dur": 250000.0,
                                      "args": {"unit": 3, "step": 7, "bytes": 4096}})"));
  EXPECT_EQ(spans[1]["name"], "compute");
  EXPECT_EQ(spans[1]["args"]["unit"], -1);
  EXPECT_EQ(spans[2]["ts"], 1e12);
  EXPECT_EQ(spans[2]["dur"], 1.0);
  EXPECT_EQ(spans[2]["args"]["bytes"], 1099511627776);
}

TEST(TraceFile, names_a_thread_for_each_lane_in_the_order_of_the_pipeline) {
  const TemporaryFolder folder;
  TraceFile file(folder / "trace.json");
  file.close();
  std::vector<std::string> names;
  for (const auto& e : events(nlohmann::json::parse(file_bytes(folder / "trace.json")), "M"))
    if (e["name"] == "thread_name") {
      EXPECT_EQ(e["tid"], names.size() + 1);
      names.push_back(e["args"]["name"]);
    }
  EXPECT_EQ(names, (std::vector<std::string>{"read", "upload", "gather", "compute", "download", "write"}));
}

TEST(TraceFile, needs_only_its_end_where_the_run_was_killed) {
  const TemporaryFolder folder;
  TraceFile file(folder / "trace.json");
  file.append(first_step);
  const std::string cut = file_bytes(folder / "trace.json");
  EXPECT_EQ(events(nlohmann::json::parse(cut + "]"), "X").size(), 2U);
}

TEST(TraceFile, writes_more_spans_than_its_buffer_holds) {
  const TemporaryFolder folder;
  TraceFile file(folder / "trace.json");
  file.append(std::vector<LaneSpan>(2000, first_step[0]));
  file.close();
  EXPECT_EQ(events(nlohmann::json::parse(file_bytes(folder / "trace.json")), "X").size(), 2000U);
}

TEST(TraceFile, is_told_from_other_files_by_its_beginning) {
  const TemporaryFolder folder;
  TraceFile(folder / "trace.json").append(first_step);
  EXPECT_TRUE(holds_trace(folder / "trace.json"));
  const std::string text = file_bytes(folder / "trace.json");
  EXPECT_TRUE(holds_trace(folder.write("cut", text.substr(0, 20))));
  EXPECT_TRUE(holds_trace(folder.write("empty", "")));
  for (const char* other : {"[1, 2]", "{", "[\n{\"ph\": \"X\"}]", "sentence\tlabel\n"})
    EXPECT_FALSE(holds_trace(folder.write("other", other))) << other;
}

TEST(TraceFile, names_a_file_that_cannot_be_written) {
  const TemporaryFolder folder;
  expect_contains(file_error([&] { TraceFile(folder / "none/trace.json"); }), "none/trace.json: cannot be created: ");
}

}  // namespace
}  // namespace distzo2
