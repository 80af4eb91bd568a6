// SPDX-License-Identifier: BSD-3-Clause
// What the header of a trajectory holds decides whether the program goes on with it.
#include "io/trajectory_file.hpp"
#include "tests/support/tiny_project.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdint>
#include <cstring>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The bytes of a trajectory in format version 1: the same without the u64 decay mask before the strings.
std::string as_version_1(const std::string& bytes) {
  constexpr std::size_t prefix = 12, fixed_fields = 4 + 8 + 5 + 4 + 4 + 8 + 3 * 8;
  constexpr std::uint32_t mask = 8;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, sizeof length);
  std::string header = bytes.substr(0, prefix + length);
  header.erase(prefix + fixed_fields, mask);
  header[4] = 1;
  length -= mask;
  std::memcpy(header.data() + 8, &length, sizeof length);
  const std::uint64_t seal = XXH3_64bits(header.data(), header.size());
  return header + std::string(reinterpret_cast<const char*>(&seal), sizeof seal) +
         bytes.substr(prefix + length + mask + sizeof seal);
}

TEST(TrajectoryHeader, of_format_version_1_is_gone_on_with_and_exported) {
  const std::vector<std::string> sets{"zo/steps=12", "zo/weight decay=0.1", "zo/learning rate=1e-3"};
  const TinyProject project;
  const json whole = project.trained(sets);
  const std::string bytes = text_of_file(project.path("run/trajectory.zoj"));
  ASSERT_EQ(bytes[4], 2);
  const std::string old = as_version_1(bytes);
  fs::remove_all(project.path("run/final"));
  fs::remove(project.path("run/summary.json"));
  project.write("run/trajectory.zoj", old.substr(0, old.size() - 7 * 64));  // without the digest and six steps
  const json resumed = project.trained(sets, {"--resume", "auto"});
  EXPECT_EQ(resumed.at("theta_digest"), whole.at("theta_digest"));
  EXPECT_EQ(resumed.at("trajectory_digest"), whole.at("trajectory_digest"));
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), old);
  EXPECT_TRUE(project.json({"inspect", "run", "--json"}).at("decay_mask").is_null());
  EXPECT_EQ(project.json({"export", "--trajectory", "run", "--output", "theta", "--json"}).at("theta_digest"),
            whole.at("theta_digest"));
}

TEST(TrajectoryHeader, with_another_decay_mask_is_refused) {
  const TinyProject project;
  project.trained();
  const Trajectory run = read_trajectory(project.path("run/trajectory.zoj"));
  // The mask of the tiny model's matrices: a table of its tensors, from what `inspect` says of them.
  std::vector<std::int64_t> bounds;
  const json tensors = project.json({"inspect", "model", "--json"}).at("tensors");
  for (const json& t : tensors) {
    if (!t.at("decayed")) continue;
    const std::int64_t first = t.at("first"),
                       size = t.at("rows").get<std::int64_t>() * t.at("cols").get<std::int64_t>();
    if (!bounds.empty() && bounds.back() == first)
      bounds.pop_back();
    else
      bounds.push_back(first);
    bounds.push_back(first + size);
  }
  EXPECT_EQ(run.header.decay_mask, XXH3_64bits(bounds.data(), bounds.size() * sizeof bounds[0]));

  TrajectoryHeader other = run.header;
  other.decay_mask = 0x0123456789abcdefULL;
  TrajectoryWriter writer(project.path("run/trajectory.zoj"), other, 0);
  for (std::size_t t = 0; t < 5; ++t) writer.append(run.steps[t]);
  fs::remove(project.path("run/summary.json"));
  const std::string changed = text_of_file(project.path("run/trajectory.zoj"));
  const std::vector<std::string> parts{"trajectory.zoj: decay mask 0123456789abcdef in its header"};
  expect_one_line(project.train({}, {"--resume", "auto"}), 3, parts);
  expect_one_line(project.run({"export", "--trajectory", "run", "--output", "theta"}), 3, parts);
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), changed);
  EXPECT_FALSE(fs::exists(project.path("theta")));
}

}  // namespace
}  // namespace distzo2
