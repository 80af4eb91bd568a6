// SPDX-License-Identifier: BSD-3-Clause
#include "io/output_file.hpp"
#include "io/trajectory_file.hpp"
#include "io/trajectory_format.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "test_paths.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

TrajectoryHeader header(int directions = 1, Difference difference = Difference::central) {
  TrajectoryHeader h;
  h.rule = {.seed = 1234567890123456789ULL,
            .kind = DirectionKind::rademacher,
            .storage = Storage::bf16,
            .rounding = Rounding::nearest,
            .round_every = 4};
  h.step = {difference, directions, 1e-3};
  h.objective = Objective::language_model;
  h.theta0_digest = 0x0123456789abcdefULL;
  h.deck_digest = 0xfedcba9876543210ULL;
  h.data_digest = 42;
  h.decay_mask = 0x1122334455667788ULL;
  h.mathematical_keys = "zo/seed: 1\nzo/epsilon: 0.001\n";
  h.fingerprint = "a library, an instruction set";
  return h;
}

StepRecord step(const TrajectoryHeader& h, std::uint32_t t) {
  StepRecord r;
  r.t = t;
  r.lr = 1e-3 / (t + 1);
  r.wd = 0.125F;
  for (int k = 0; k < h.step.directions; ++k) {
    r.g.push_back(0.5 * t - k);
    r.g_raw.push_back(1.5 * t - k);
    r.c.push_back(static_cast<float>(-r.lr * r.g.back() / h.step.directions));
  }
  for (int e = 0; e < evaluation_count(h.step.difference, h.step.directions); ++e) {
    r.losses.push_back(0.7 + 0.01 * e + t);
  }
  return r;
}

std::string file_of(const TrajectoryHeader& h, std::uint32_t steps) {
  std::string bytes = encode_header(h);
  for (std::uint32_t t = 0; t < steps; ++t) {
    bytes += encode_record(h, step(h, t));
  }
  return bytes;
}

void expect_equal(const StepRecord& a, const StepRecord& b) {
  EXPECT_EQ(a.t, b.t);
  EXPECT_EQ(a.lr, b.lr);
  EXPECT_EQ(a.wd, b.wd);
  EXPECT_EQ(a.c, b.c);
  EXPECT_EQ(a.g, b.g);
  EXPECT_EQ(a.g_raw, b.g_raw);
  EXPECT_EQ(a.losses, b.losses);
}

TEST(TrajectoryFormat, gives_back_what_was_written) {
  for (const Difference difference : {Difference::central, Difference::forward}) {
    for (const int q : {1, 3}) {
      const TrajectoryHeader h = header(q, difference);
      const Trajectory found =
          decode_trajectory(file_of(h, 3) + encode_record(h, DigestRecord{3, 77}) + encode_record(h, step(h, 3)), "t");
      EXPECT_EQ(found.header.rule.seed, h.rule.seed);
      EXPECT_EQ(found.header.rule.kind, h.rule.kind);
      EXPECT_EQ(found.header.rule.storage, h.rule.storage);
      EXPECT_EQ(found.header.rule.rounding, h.rule.rounding);
      EXPECT_EQ(found.header.rule.round_every, h.rule.round_every);
      EXPECT_EQ(found.header.step.difference, difference);
      EXPECT_EQ(found.header.step.directions, q);
      EXPECT_EQ(found.header.step.epsilon, 1e-3);
      EXPECT_EQ(found.header.objective, h.objective);
      EXPECT_EQ(found.header.theta0_digest, h.theta0_digest);
      EXPECT_EQ(found.header.deck_digest, h.deck_digest);
      EXPECT_EQ(found.header.data_digest, h.data_digest);
      EXPECT_EQ(found.header.decay_mask, h.decay_mask);
      EXPECT_EQ(found.header.mathematical_keys, h.mathematical_keys);
      EXPECT_EQ(found.header.fingerprint, h.fingerprint);
      ASSERT_EQ(found.steps.size(), 4U);
      for (std::uint32_t t = 0; t < 4; ++t) {
        expect_equal(found.steps[t], step(h, t));
      }
      ASSERT_EQ(found.digests.size(), 1U);
      EXPECT_EQ(found.digests[0].t, 3U);
      EXPECT_EQ(found.digests[0].theta_digest, 77U);
      EXPECT_FALSE(found.torn);
    }
  }
}

TEST(TrajectoryFormat, keeps_values_that_are_not_finite) {
  const TrajectoryHeader h = header();
  StepRecord r = step(h, 0);
  r.losses = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  r.g_raw = {-std::numeric_limits<double>::infinity()};
  const Trajectory found = decode_trajectory(encode_header(h) + encode_record(h, r), "t");
  EXPECT_TRUE(std::isnan(found.steps.at(0).losses[0]));
  EXPECT_EQ(found.steps[0].losses[1], std::numeric_limits<double>::infinity());
  EXPECT_EQ(found.steps[0].g_raw, r.g_raw);
}

TEST(TrajectoryFormat, takes_64_bytes_a_step_of_one_direction) {
  // u32 kind, u32 t, f64 lr, f32 wd, f32 c, f64 g, f64 g as measured, f64 L+ and L-, u64 checksum
  constexpr std::size_t record = 4 + 4 + 8 + 4 + 4 + 8 + 8 + 2 * 8 + 8;
  static_assert(record == 64);
  TrajectoryHeader h = header();
  EXPECT_EQ(encode_record(h, step(h, 0)).size(), record);
  EXPECT_EQ(encode_record(h, DigestRecord{0, 1}).size(), record);
  // 20,000 steps with a digest behind every thousandth, and as much text in the header as a deck's keys and an
  // arithmetic have.
  h.mathematical_keys = std::string(2000, 'k');
  h.fingerprint = std::string(500, 'f');
  std::vector<StepRecord> steps;
  std::vector<DigestRecord> digests;
  for (std::uint32_t t = 0; t < 20000; ++t) {
    steps.push_back(step(h, t));
    if ((t + 1) % 1000 == 0) digests.push_back({t + 1, t});
  }
  const std::string bytes = encode_trajectory(h, steps, digests);
  EXPECT_EQ(bytes.size(), encode_header(h).size() + (20000 + 20) * record);
  EXPECT_LT(bytes.size(), 1300000U);
}

TEST(TrajectoryFormat, puts_each_digest_behind_its_steps) {
  const TrajectoryHeader h = header();
  const std::vector<StepRecord> steps{step(h, 0), step(h, 1)};
  EXPECT_EQ(encode_trajectory(h, steps, std::vector<DigestRecord>{{0, 5}, {1, 6}, {2, 7}}),
            encode_header(h) + encode_record(h, DigestRecord{0, 5}) + encode_record(h, steps[0]) +
                encode_record(h, DigestRecord{1, 6}) + encode_record(h, steps[1]) +
                encode_record(h, DigestRecord{2, 7}));
}

TEST(TrajectoryFormat, names_the_first_record_in_which_two_differ) {
  const TrajectoryHeader h = header();
  const std::string three = file_of(h, 3), two = file_of(h, 2);
  EXPECT_EQ(first_difference(three, three), "");
  EXPECT_EQ(first_difference(three, two), "");
  EXPECT_EQ(first_difference(two, three), "");
  EXPECT_EQ(first_difference(encode_header(h), three), "");
  StepRecord other = step(h, 1);
  other.losses[1] += 1;
  const std::string differs = file_of(h, 1) + encode_record(h, other) + encode_record(h, step(h, 2));
  EXPECT_EQ(first_difference(three, differs), "record 2");
  EXPECT_EQ(first_difference(differs, two), "record 2");
  EXPECT_EQ(first_difference(file_of(h, 1) + encode_record(h, DigestRecord{1, 3}), three), "record 2");
  TrajectoryHeader seed = h;
  seed.rule.seed += 1;
  EXPECT_EQ(first_difference(file_of(seed, 3), three), "the header");
  TrajectoryHeader longer = h;
  longer.fingerprint += " and more";
  EXPECT_EQ(first_difference(three, file_of(longer, 3)), "the header");
}

TEST(TrajectoryFormat, refuses_a_record_that_would_leave_theta_without_numbers) {
  const TrajectoryHeader h = header(2);
  const auto refused = [&](auto change) {
    StepRecord r = step(h, 1);
    change(r);
    return file_error([&] { decode_trajectory(file_of(h, 1) + encode_record(h, r), "name"); });
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  expect_contains(refused([](StepRecord& r) { r.c[1] = infinity; }), "name: record 2: c[2] = inf is not finite");
  expect_contains(refused([](StepRecord& r) { r.c[0] = std::nanf(""); }), "name: record 2: c[1] = nan is not finite");
  expect_contains(refused([](StepRecord& r) { r.lr = infinity; }), "name: record 2: lr = inf is not finite");
  expect_contains(refused([](StepRecord& r) { r.wd = -infinity; }), "name: record 2: wd = -inf is not finite");
  expect_contains(refused([](StepRecord& r) { r.lr = 1e200; }), "name: record 2: lr * wd");
  for (const double epsilon : {0.0, -1e-3, std::nan("")}) {
    TrajectoryHeader other = h;
    other.step.epsilon = epsilon;
    expect_contains(file_error([&] { decode_trajectory(encode_header(other), "name"); }), "name: header: epsilon");
  }
}

TEST(TrajectoryFormat, cut_anywhere_it_ends_at_the_last_whole_record) {
  const TrajectoryHeader h = header(2, Difference::forward);
  const std::string bytes = file_of(h, 3);
  const std::size_t start = encode_header(h).size();
  const std::size_t size = record_size(h);
  for (std::size_t n = 0; n < start; ++n) {
    const std::string message = file_error([&] { decode_trajectory(bytes.substr(0, n), "name"); });
    EXPECT_EQ(message.find("name: "), 0U) << message;
  }
  for (std::size_t n = start; n <= bytes.size(); ++n) {
    const Trajectory found = decode_trajectory(bytes.substr(0, n), "name");
    EXPECT_EQ(found.steps.size(), (n - start) / size);
    EXPECT_EQ(found.whole_bytes, start + (n - start) / size * size);
    EXPECT_EQ(found.torn, (n - start) % size != 0);
  }
}

TEST(TrajectoryFormat, no_flipped_bit_is_taken_as_good) {
  const TrajectoryHeader h = header();
  const std::string bytes = file_of(h, 3);
  const std::size_t last = bytes.size() - record_size(h);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    if (bit / 8 < last) {
      const std::string message = file_error([&] { decode_trajectory(flipped, "name"); });
      const std::size_t start = encode_header(h).size();
      if (bit / 8 >= start) {
        expect_contains(message, "record " + std::to_string((bit / 8 - start) / record_size(h) + 1));
      }
    } else {  // the last record cannot be told from one that was cut short
      const Trajectory found = decode_trajectory(flipped, "name");
      EXPECT_EQ(found.steps.size(), 2U);
      EXPECT_TRUE(found.torn);
      EXPECT_EQ(found.whole_bytes, last);
    }
  }
}

TEST(TrajectoryFormat, cuts_a_tail_of_several_records_that_a_crashed_machine_left_empty) {
  const TrajectoryHeader h = header();
  const std::string whole = file_of(h, 3);
  const Trajectory found = decode_trajectory(whole + std::string(5 * record_size(h) + 7, '\0'), "name");
  EXPECT_EQ(found.steps.size(), 3U);
  EXPECT_TRUE(found.torn);
  EXPECT_EQ(found.whole_bytes, whole.size());
  expect_contains(file_error([&] {
                    decode_trajectory(whole + std::string(2 * record_size(h), '\0') + encode_record(h, step(h, 5)),
                                      "name");
                  }),
                  "record 4");
}

TEST(TrajectoryFormat, refuses_whole_records_out_of_order_or_of_no_known_kind) {
  const TrajectoryHeader h = header();
  const auto refused = [&](const std::string& tail) {
    return file_error([&] { decode_trajectory(file_of(h, 2) + tail, "name"); });
  };
  expect_contains(refused(encode_record(h, step(h, 3))), "record 3: t = 3 where 2 must follow");
  expect_contains(refused(encode_record(h, step(h, 1))), "record 3: t = 1 where 2 must follow");
  expect_contains(refused(encode_record(h, DigestRecord{1, 5})), "record 3: a digest of step 1 after 2 steps");
}

TEST(TrajectoryFormat, refuses_files_of_other_kinds_and_versions) {
  const TrajectoryHeader h = header();
  expect_contains(file_error([] { decode_trajectory("", "a"); }), "a: not a trajectory");
  expect_contains(file_error([] { decode_trajectory("PK\3\4 and more", "a"); }), "a: not a trajectory");
  std::string newer = file_of(h, 1);
  for (const int version : {0, 3}) {
    newer[4] = static_cast<char>(version);
    expect_contains(file_error([&] { decode_trajectory(newer, "a"); }),
                    "format version " + std::to_string(version) + "; this program reads 1 to 2");
  }
  TrajectoryHeader other = h;
  other.generator = generator_version + 1;
  expect_contains(file_error([&] { decode_trajectory(encode_header(other), "a"); }), "of the generator");
  other = h;
  other.step.directions = 0;
  expect_contains(file_error([&] { decode_trajectory(encode_header(other), "a"); }), "0 directions");
}

TEST(TrajectoryFormat, reads_the_files_of_version_1_that_are_kept) {
  for (const char* seed : {"seed1", "seed2", "seed3"}) {
    const auto run = test_paths::sources / "results/smollm2_sst2" / seed;
    const std::string bytes = file_bytes(run / "trajectory.zoj");
    ASSERT_EQ(bytes.substr(0, 8), std::string("ZOJ1\1\0\0\0", 8));
    const Trajectory found = decode_trajectory(bytes, seed);
    EXPECT_FALSE(found.header.decay_mask.has_value());
    EXPECT_EQ(found.header.rule.kind, DirectionKind::rademacher);
    EXPECT_EQ(found.header.step.epsilon, 1e-3);
    EXPECT_EQ(found.steps.size(), 1200U);
    EXPECT_FALSE(found.torn);
    expect_contains(file_bytes(run / "summary.json"),
                    fmt::format("\"trajectory_digest\": \"{:016x}\"", trajectory_digest(found.steps)));
  }
}

TEST(TrajectoryDigest, is_over_steps_g_and_losses_alone) {
  const TrajectoryHeader h = header();
  const std::vector<StepRecord> steps{step(h, 0), step(h, 1)};
  const auto changed = [&](auto change) {
    std::vector<StepRecord> other = steps;
    change(other[1]);
    return trajectory_digest(other) != trajectory_digest(steps);
  };
  EXPECT_TRUE(changed([](StepRecord& r) { r.g[0] = std::nextafter(r.g[0], 9.0); }));
  EXPECT_TRUE(changed([](StepRecord& r) { r.losses[1] = std::nextafter(r.losses[1], 9.0); }));
  EXPECT_TRUE(changed([](StepRecord& r) { r.t = 7; }));
  EXPECT_FALSE(changed([](StepRecord& r) { r.lr = 7; }));
}

TEST(TrajectoryFile, knows_the_updates_that_led_to_each_of_its_records) {
  const TrajectoryHeader h = header();
  std::vector<StepRecord> steps{step(h, 0), step(h, 1), step(h, 2)};
  const std::vector<std::uint64_t> histories = update_histories(steps);
  ASSERT_EQ(histories.size(), 4U);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "trajectory.zoj";
  {
    TrajectoryWriter writer(file, h, 1);
    for (const StepRecord& r : {steps[0], steps[1]}) writer.append(r);
    EXPECT_EQ(writer.history(0), histories[0]);
    EXPECT_EQ(writer.history(2), histories[2]);
  }
  TrajectoryWriter writer(file, read_trajectory(file), 1);
  writer.append(steps[2]);
  for (std::uint32_t n = 0; n < 4; ++n) EXPECT_EQ(writer.history(n), histories[n]) << n;
  // What changes an update changes all that comes after it, and nothing before; what does not change it does not.
  steps[1].losses[0] += 1;
  EXPECT_EQ(update_histories(steps), histories);
  steps[1].c[0] = std::nextafter(steps[1].c[0], 1.0F);
  const std::vector<std::uint64_t> others = update_histories(steps);
  EXPECT_EQ(others[1], histories[1]);
  EXPECT_NE(others[2], histories[2]);
  EXPECT_NE(others[3], histories[3]);
}

TEST(TrajectoryFile, goes_on_after_a_torn_tail) {
  const TemporaryFolder folder;
  const TrajectoryHeader h = header();
  const auto path = folder / "trajectory.zoj";
  {
    TrajectoryWriter writer(path, h, 0.0);
    writer.append(step(h, 0));
    writer.append(step(h, 1));
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
  const Trajectory found = read_trajectory(path);
  ASSERT_EQ(found.steps.size(), 1U);
  {
    TrajectoryWriter writer(path, found, 10.0);
    writer.append(step(h, 1));
    writer.append(DigestRecord{2, 9});
    writer.sync();
  }
  EXPECT_EQ(file_bytes(path), file_of(h, 2) + encode_record(h, DigestRecord{2, 9}));
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
    EXPECT_FALSE(is_made_beside(path, entry.path().filename().string()));
}

TEST(TrajectoryFile, names_a_file_that_is_not_there) {
  const TemporaryFolder folder;
  expect_contains(file_error([&] { read_trajectory(folder / "none.zoj"); }), "none.zoj");
  expect_contains(file_error([&] { TrajectoryWriter(folder / "no" / "t.zoj", header(), 1.0); }), "no/t.zoj");
}

}  // namespace
}  // namespace distzo2
