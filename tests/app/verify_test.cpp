// SPDX-License-Identifier: BSD-3-Clause
// `verify` replays a trajectory on its base model and compares every digest that the run recorded.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.hpp"
#include "io/trajectory_format.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

constexpr int mismatch = static_cast<int>(ExitCode::mismatch);

json column(const json& rows, const char* key) {
  json values = json::array();
  for (const json& row : rows) values.push_back(row.at(key));
  return values;
}

/// A run with a digest after every fifth of its twelve steps and at its end.
class Verify : public ::testing::Test {
protected:
  const Words every_fifth_{"parallel/consistency check every=5", "output/evaluate every=0"};

  ProgramResult verify(const std::string& trajectory, const Words& more = {"--model", "model"}) const {
    return project_.run(with({"verify", trajectory}, more));
  }
  /// The run's trajectory in which something was changed, its checksums made to fit.
  void write_changed(const std::string& name, const std::function<void(Trajectory&)>& change) const {
    Trajectory t = read_trajectory(project_.path("run/trajectory.zoj"));
    change(t);
    project_.write(name, encode_trajectory(t.header, t.steps, t.digests));
  }
  TinyProject project_;
};

TEST_F(Verify, replays_to_every_digest_that_was_recorded) {
  const json summary = project_.trained(every_fifth_);
  const json result = project_.json({"verify", "run", "--json"});
  EXPECT_EQ(result.at("equal"), true);
  EXPECT_EQ(result.at("steps"), 12);
  EXPECT_EQ(result.at("most_steps_between"), 5);
  EXPECT_EQ(result.at("steps_after_last"), 0);
  const json& digests = result.at("digests");
  EXPECT_EQ(column(digests, "step"), json({0, 5, 10, 12}));
  EXPECT_EQ(column(digests, "record"), json({0, 6, 12, 15}));  // 12 steps, and a digest behind 5, 10 and 12 of them
  EXPECT_EQ(column(digests, "replayed"), column(digests, "stored"));
  EXPECT_EQ(digests.back().at("replayed"), summary.at("theta_digest"));
  const json exported = project_.json({"export", "--trajectory", "run", "--step", "5", "--output", "theta5", "--json"});
  EXPECT_EQ(digests.at(1).at("replayed"), exported.at("theta_digest"));

  // The file alone, sent to somebody with the base model.
  fs::copy_file(project_.path("run/trajectory.zoj"), project_.path("sent.zoj"));
  const ProgramResult alone = verify("sent.zoj");
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.err, "");
  EXPECT_EQ(line_of(alone.out, "verified   "), "4 digests, at most 5 steps apart");
}

TEST_F(Verify, holds_for_every_form_of_the_method) {
  const std::vector<Words> forms{
      {"precision/storage=bf16", "precision/round every=3", "zo/directions=2", "zo/weight decay=0.5"},
      {"precision/storage=fp16", "zo/kind=rademacher", "zo/difference=forward"}};
  for (const Words& form : forms) {
    fs::remove_all(project_.path("run"));
    project_.trained(with(every_fifth_, form));
    const json result = project_.json({"verify", "run", "--json"}, {.environment = {"OMP_NUM_THREADS=3"}});
    EXPECT_EQ(result.at("digests").size(), 4U);
    EXPECT_EQ(result.at("equal"), true);
  }
}

TEST_F(Verify, has_a_digest_of_every_thousandth_step_of_one_rank) {
  project_.trained(
      {"zo/steps=1001", "zo/learning rate=1e-5", "zo/diverged factor=0", "data/dev=", "data/test=", "zo/batch=1"});
  const json result = project_.json({"verify", "run", "--json"});
  EXPECT_EQ(column(result.at("digests"), "step"), json({0, 1000, 1001}));
  EXPECT_EQ(result.at("equal"), true);
}

TEST_F(Verify, says_how_many_steps_no_digest_covers) {
  project_.trained(every_fifth_);
  const fs::path file = project_.path("run/trajectory.zoj");
  fs::resize_file(file, fs::file_size(file) - 64 - 3);  // without the digest at the end and a whole last step
  const json result = project_.json({"verify", "run", "--json"});
  EXPECT_EQ(result.at("steps"), 11);
  EXPECT_EQ(result.at("torn"), true);
  EXPECT_EQ(result.at("steps_after_last"), 1);
  EXPECT_EQ(line_of(verify("run", {}).out, "verified   "),
            "3 digests, at most 5 steps apart, and 1 step after the last");
}

TEST_F(Verify, names_the_record_of_a_digest_that_was_changed_with_its_checksum) {
  project_.trained(every_fifth_);
  write_changed("changed.zoj", [](Trajectory& t) { t.digests.at(1).theta_digest ^= 1; });
  expect_one_line(verify("changed.zoj"), mismatch, {"changed.zoj", "record 12", "step 10"});
  const ProgramResult printed = verify("changed.zoj", {"--model", "model", "--json"});
  EXPECT_EQ(column(json::parse(printed.out).at("digests"), "equal"), json({true, true, false, true}));
  // Export of that step refuses to write it.
  expect_one_line(
      project_.run({"export", "--trajectory", "changed.zoj", "--model", "model", "--step", "10", "--output", "theta"}),
      mismatch, {"changed.zoj", "step 10"});
  EXPECT_FALSE(fs::exists(project_.path("theta")));
}

TEST_F(Verify, finds_an_update_that_was_changed_with_its_checksum) {
  project_.trained(with(every_fifth_, {"zo/weight decay=0.1"}));
  const std::vector<std::function<void(Trajectory&)>> changes{
      [](Trajectory& t) { t.steps.at(6).c.at(0) = std::nextafter(t.steps.at(6).c.at(0), 1.0F); },
      [](Trajectory& t) { t.steps.at(6).lr *= 2; }, [](Trajectory& t) { t.steps.at(6).wd = 0.2F; }};
  for (const auto& change : changes) {
    write_changed("changed.zoj", change);
    const ProgramResult printed = verify("changed.zoj", {"--model", "model", "--json"});
    EXPECT_EQ(printed.exit_code, mismatch);
    EXPECT_EQ(column(json::parse(printed.out).at("digests"), "equal"), json({true, true, false, false}));
  }
  write_changed("changed.zoj", [](Trajectory& t) { t.header.rule.seed += 1; });
  expect_one_line(verify("changed.zoj"), mismatch, {"record 6", "step 5"});
}

TEST_F(Verify, refuses_a_flipped_bit_in_any_field_with_the_number_of_the_record) {
  project_.trained(every_fifth_);
  const std::string bytes = file_bytes(project_.path("run/trajectory.zoj"));
  const std::size_t third = bytes.size() - 64 * (12 + 3) + 64 * 2;
  // kind, t, lr, wd, c, g, g as measured, L of both signs, checksum
  for (const std::size_t field : {0U, 4U, 8U, 16U, 20U, 24U, 32U, 40U, 48U, 56U}) {
    std::string flipped = bytes;
    flipped[third + field] = static_cast<char>(flipped[third + field] ^ 0x10);
    project_.write("flipped.zoj", flipped);
    expect_one_line(verify("flipped.zoj"), 3, {"flipped.zoj", "record 3"});
  }
}

TEST_F(Verify, tells_another_base_model) {
  project_.trained(every_fifth_);
  const TinyProject other("llama_untied");
  const Words of_other{"--model", other.path("model").string()};
  expect_one_line(verify("run", of_other), mismatch, {"model", "another base model"});
  // One bit of one weight.
  fs::copy(project_.path("model"), project_.path("near"));
  std::string weights = file_bytes(project_.path("near/model.safetensors"));
  weights.back() = static_cast<char>(weights.back() ^ 1);
  project_.write("near/model.safetensors", weights);
  expect_one_line(verify("run", {"--model", "near"}), mismatch, {"near", "another base model"});
  expect_one_line(verify("run", {"--model", "none"}), 3, {"none"});
  fs::copy_file(project_.path("run/trajectory.zoj"), project_.path("sent.zoj"));
  fs::create_directory(project_.path("alone"));
  fs::rename(project_.path("sent.zoj"), project_.path("alone/sent.zoj"));
  expect_one_line(verify("alone/sent.zoj", {}), 2, {"--model"});
  expect_one_line(verify("nowhere.zoj"), 3, {"nowhere.zoj"});
}

TEST_F(Verify, knows_the_random_weights_of_a_runs_deck) {
  project_.write("random.yaml",
                 "model: {shape: llama-tiny, weights: random, seed: 1}\n"
                 "data: {task: random tokens, sequence length: 16, train examples: 20}\n"
                 "zo: {steps: 4, batch: 4, epsilon: 1e-3, learning rate: 1e-2}\n"
                 "output: {folder: run}\n");
  ASSERT_EQ(project_.run({"train", "random.yaml"}).exit_code, 0);
  const json result = project_.json({"verify", "run", "--json"});
  EXPECT_EQ(result.at("equal"), true);
  EXPECT_EQ(column(result.at("digests"), "step"), json({0, 4}));
}

}  // namespace
}  // namespace distzo2
