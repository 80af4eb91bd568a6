// SPDX-License-Identifier: BSD-3-Clause
// Which run `--resume auto` takes, and the command that a stopped run prints for it.
#include <gtest/gtest.h>

#include "app/next_command.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Sets of a run that does one step in each process, since its time is over before the first: no clock decides.
const std::vector<std::string> one_step{"zo/steps=1", "data/dev=", "data/test=", "checkpoint/time limit=0.001 s"};

/// The tiny project with a deck that names no output folder.
struct NumberedRuns : TinyProject {
  NumberedRuns() {
    std::string deck = text_of_file(path("deck.yaml"));
    deck.erase(deck.find("  folder: run\n"), 14);
    write("deck.yaml", deck);
  }
};

TEST(ResumeChoice, the_command_that_a_stopped_run_prints_goes_on_with_that_run) {
  const NumberedRuns project;
  const ProgramResult stopped = project.train(one_step);
  ASSERT_EQ(stopped.exit_code, 75) << stopped.err;
  ASSERT_EQ(project.train(one_step).exit_code, 75);  // a newer run, which auto alone would take
  const std::string command = line_of(stopped.out, "resume   ");
  const ProgramResult resumed = project.run_line(command);
  EXPECT_EQ(resumed.exit_code, 0) << command << "\n" << resumed.err;
  EXPECT_EQ(line_of(resumed.out, "resuming "), project.path("runs/deck-001").string() + ", which has 1 step");
  EXPECT_EQ(project.summary("runs/deck-001").at("steps"), 1);
  EXPECT_FALSE(fs::exists(project.path("runs/deck-002/summary.json")));
}

TEST(ResumeChoice, the_command_holds_deck_and_options_as_a_shell_needs_them) {
  const TrainOptions options{{"it's my.yaml", {"zo/learning rate=1e-6", "zo/steps=9"}}, false};
  RunConfig config;
  const auto ends_with = [&](const std::string& end) {
    const std::string line = resume_command(options, config, {"/runs/a b"}, 1);
    EXPECT_TRUE(line.starts_with("resume   ") && line.ends_with(end)) << line;
    EXPECT_EQ(resume_command(options, config, {"/runs/a b"}, 2), "resume   mpirun -n 2 " + line.substr(9));
  };
  const std::string begin = R"( train 'it'\''s my.yaml' --set 'zo/learning rate=1e-6' --set zo/steps=9)";
  ends_with(begin + " --set 'output/folder=/runs/a b' --resume auto");
  config.output.folder = "/runs/a b";  // deck or options name it
  ends_with(begin + " --resume auto");
}

TEST(ResumeChoice, a_runs_own_deck_goes_on_with_that_run) {
  const NumberedRuns project;
  ASSERT_EQ(project.train(one_step).exit_code, 75);
  fs::create_directories(project.path("elsewhere"));
  fs::rename(project.path("runs/deck-001"), project.path("elsewhere/moved"));
  const ProgramResult resumed = project.run({"train", "elsewhere/moved/deck.yaml", "--resume", "auto"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(project.summary("elsewhere/moved").at("steps"), 1);
  EXPECT_FALSE(fs::exists(project.path("runs/deck-001")));
}

TEST(ResumeChoice, a_moved_runs_own_deck_goes_on_where_it_is_unless_an_option_names_a_folder) {
  const TinyProject project;  // its deck names output/folder
  ASSERT_EQ(project.train(one_step).exit_code, 75);
  fs::rename(project.path("run"), project.path("moved"));
  for (const char* set : {"output/folder=new", "output/folder = newer"}) {
    EXPECT_EQ(project.run({"train", "moved/deck.yaml", "--resume", "auto", "--set", set}).exit_code, 75) << set;
    EXPECT_TRUE(fs::exists(project.path(std::string(set).substr(std::string(set).find("new"))))) << set;
  }
  EXPECT_FALSE(fs::exists(project.path("moved/summary.json")));
  EXPECT_EQ(project.run({"train", "moved/deck.yaml", "--resume", "auto"}).exit_code, 0);
  EXPECT_EQ(project.summary("moved").at("steps"), 1);
  EXPECT_FALSE(fs::exists(project.path("run")));
}

TEST(ResumeChoice, says_where_there_is_no_run_to_go_on_with) {
  const NumberedRuns project;
  const std::string note = "there is no run of this deck to go on with: a new one begins";
  EXPECT_EQ(line_of(project.train(one_step, resume).out, "note     "), note);
  const ProgramResult second = project.train(one_step, resume);
  EXPECT_EQ(line_of(second.out, "note     "), "");
  EXPECT_EQ(line_of(second.out, "resuming "), project.path("runs/deck-001").string() + ", which has 1 step");
  fs::create_directory(project.path("empty"));
  std::vector<std::string> sets = one_step;
  sets.emplace_back("output/folder=empty");
  const ProgramResult empty = project.train(sets, resume);
  EXPECT_EQ(line_of(empty.out, "note     "), note);
  EXPECT_EQ(line_of(empty.out, "resuming "), "");
}

}  // namespace
}  // namespace distzo2
