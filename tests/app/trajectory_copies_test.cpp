// SPDX-License-Identifier: BSD-3-Clause
// Stores whose folder outlives the job keep a copy of the trajectory, and a run goes on from the longest one.
#include <gtest/gtest.h>

#include "io/trajectory_format.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/store_on_disk.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uintmax_t record = 64;

/// A run that was stopped after three steps, its store in a folder that is called persistent.
class TrajectoryCopies : public StoreOnDisk {
protected:
  TrajectoryCopies() {
    sets_.emplace_back("memory/scratch persistent=true");
    sets_.emplace_back("output/evaluate every=0");
    take_three_steps();
    for (const auto& store : fs::directory_iterator(project_.path("scratch"))) copy_ = store.path() / "trajectory.zoj";
  }
  static void cut(const fs::path& file, std::uintmax_t bytes) { fs::resize_file(file, fs::file_size(file) - bytes); }
  /// Another loss in the record of this step, its checksum made to fit.
  static std::string changed(const fs::path& file, std::size_t step) {
    Trajectory t = read_trajectory(file);
    t.steps.at(step).losses.at(0) += 1;
    return encode_trajectory(t.header, t.steps, t.digests);
  }
  ProgramResult go_on() { return project_.train(with({}), {"--resume", "auto"}); }
  void expect_whole_run() {
    for (const char* key : {"theta_digest", "trajectory_digest", "steps"})
      EXPECT_EQ(project_.summary().at(key), whole_.at(key)) << key;
  }

  const fs::path own_ = project_.path("run/trajectory.zoj");
  fs::path copy_;
};

TEST_F(TrajectoryCopies, hold_the_same_and_go_with_their_store) {
  EXPECT_EQ(fs::file_size(own_), fs::file_size(copy_));
  EXPECT_EQ(file_bytes(copy_), file_bytes(own_));
  EXPECT_EQ(project_.train(with({"memory/keep store=true"}), {"--resume", "auto"}).exit_code, 0);
  expect_whole_run();
  EXPECT_EQ(file_bytes(copy_), file_bytes(own_));  // the digest at the end too
  fs::remove(project_.path("run/summary.json"));
  EXPECT_EQ(go_on().exit_code, 0);
  EXPECT_TRUE(fs::is_empty(project_.path("scratch")));
}

TEST_F(TrajectoryCopies, that_are_longer_are_what_a_run_goes_on_from) {
  const std::string three = file_bytes(copy_);
  cut(own_, 2 * record + 7);  // its first record is torn
  const ProgramResult result = go_on();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(
      result.out.find(copy_.string() + " has 3 steps, and the run's own trajectory 0: the run goes on from that copy"),
      std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("resumed  after step 3"), std::string::npos) << result.out;
  EXPECT_EQ(file_bytes(own_).substr(0, three.size()), three);
  expect_whole_run();
}

TEST_F(TrajectoryCopies, stand_in_for_a_trajectory_that_is_lost) {
  fs::remove(own_);
  EXPECT_EQ(go_on().exit_code, 0);
  expect_whole_run();
}

TEST_F(TrajectoryCopies, that_are_shorter_torn_damaged_or_lost_are_made_again) {
  const std::string three = file_bytes(copy_);
  const fs::path before = project_.path("before");
  fs::create_directory(before);
  fs::copy(project_.path("run"), before / "run", fs::copy_options::recursive);
  const auto rewind = [&] {
    fs::remove_all(project_.path("run"));
    fs::copy(before / "run", project_.path("run"), fs::copy_options::recursive);
  };
  const std::size_t first = three.size() - 3 * record;
  std::string damaged = three;
  damaged[first + 20] ^= 1;
  for (const std::string& text :
       {three.substr(0, first + record), three.substr(0, three.size() - 5), damaged, std::string("no trajectory")}) {
    rewind();
    project_.write(fs::relative(copy_, project_.path()).string(), text);
    const ProgramResult result = project_.train(with({"memory/keep store=true"}), {"--resume", "auto"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.find("This copy is made again") != std::string::npos,
              text == damaged || text == "no trajectory")
        << result.out;
    EXPECT_EQ(file_bytes(copy_), file_bytes(own_));
    expect_whole_run();
  }
  rewind();
  fs::remove(copy_);
  EXPECT_EQ(go_on().exit_code, 0);
  expect_whole_run();
}

TEST_F(TrajectoryCopies, of_another_run_are_refused_with_both_files_and_the_first_record_that_differs) {
  const std::string own = file_bytes(own_);
  const std::string other = changed(copy_, 1);
  project_.write(fs::relative(copy_, project_.path()).string(), other);
  expect_one_line(go_on(), 3, {own_.string(), copy_.string(), "record 2 differs"});
  Trajectory t = read_trajectory(own_);
  t.header.rule.seed += 1;
  project_.write(fs::relative(copy_, project_.path()).string(), encode_trajectory(t.header, t.steps, t.digests));
  expect_one_line(go_on(), 3, {own_.string(), copy_.string(), "the header differs"});
  EXPECT_EQ(file_bytes(own_), own);  // a refusal changes nothing
}

TEST_F(TrajectoryCopies, that_are_damaged_are_not_begun_over_where_there_is_no_other) {
  fs::remove(own_);
  std::string text = file_bytes(copy_);
  text[text.size() - 2 * record - 1] ^= 1;
  project_.write(fs::relative(copy_, project_.path()).string(), text);
  expect_one_line(go_on(), 3, {copy_.string(), "record 1", "remove this one to begin at step 0"});
}

TEST_F(TrajectoryCopies, are_not_looked_at_where_the_folder_is_not_called_persistent) {
  project_.write(fs::relative(copy_, project_.path()).string(), changed(copy_, 1));
  sets_.emplace_back("memory/scratch persistent=false");
  EXPECT_EQ(go_on().exit_code, 0);
  expect_whole_run();
  EXPECT_TRUE(fs::is_empty(project_.path("scratch")));
}

}  // namespace
}  // namespace distzo2
