// SPDX-License-Identifier: BSD-3-Clause
// What may stand in the places of a run's folder and files: pipes, folders, links to nothing, empty runs, and summaries
// that are damaged or alone. One message at once, or a run that goes on and says what it found.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void make_pipe(const fs::path& path) {
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path;
}

/// The tiny project with a run of the deck without evaluations, of which one step of three is done.
struct OneStepDone : TinyProject {
  OneStepDone() { EXPECT_EQ(train(of_run({"checkpoint/time limit=0.001 s"})).exit_code, 75); }
  static std::vector<std::string> of_run(const std::vector<std::string>& more) {
    return with({"zo/steps=3", "data/dev=", "data/test="}, more);
  }
};

TEST(RunPlaces, with_pipes_or_folders_for_files_are_refused_at_once) {
  const OneStepDone project;
  const std::string trajectory = text_of_file(project.path("run/trajectory.zoj"));
  for (const char* name : {"metrics.jsonl", "summary.json", "deck.yaml", "store.path", ".lock", "trajectory.zoj"}) {
    const fs::path file = project.path("run") / name, kept = project.path("kept");
    const bool was_there = fs::exists(file);
    if (was_there) fs::rename(file, kept);
    make_pipe(file);
    expect_one_line(project.train(OneStepDone::of_run({}), resume), 3,
                    {file.string(), "not a regular file but a pipe"});
    fs::remove(file);
    fs::create_directory(file);
    const std::string remedy = std::string(name) == "store.path" ? "; remove it: " : "";
    expect_one_line(project.train(OneStepDone::of_run({}), resume), 3,
                    {file.string(), "not a regular file but a folder" + remedy});
    fs::remove(file);
    fs::create_symlink("nowhere", file);
    expect_one_line(project.train(OneStepDone::of_run({}), resume), 3, {file.string(), "a link to nowhere"});
    fs::remove(file);
    if (was_there) fs::rename(kept, file);
  }
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), trajectory);
  EXPECT_EQ(project.trained(OneStepDone::of_run({}), resume).at("steps"), 3);
}

TEST(RunPlaces, with_pipes_do_not_stop_who_looks_at_a_run) {
  const OneStepDone project;
  make_pipe(project.path("run/summary.json"));
  make_pipe(project.path("run/.lock"));
  EXPECT_EQ(project.json({"inspect", "run", "--json"}).at("run").at("status"), "stopped");
  make_pipe(project.path("run/metrics.jsonl"));
  expect_one_line(project.run({"inspect", "run"}), 3, {"metrics.jsonl", "a pipe"});
  make_pipe(project.path("run/trajectory.zoj"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"inspect", "run"}, {"export", "--trajectory", "run", "--output", "x"}})
    expect_one_line(project.run(words), 3, {"trajectory.zoj", "a pipe"});
}

TEST(RunPlaces, of_what_a_deck_names_are_no_pipes) {
  for (const char* name : {"deck.yaml", "task.json", "train.tsv", "test.tsv", "model/config.json",
                           "model/tokenizer.json", "model/model.safetensors"}) {
    const TinyProject project;
    make_pipe(project.path(name));
    expect_one_line(project.train(), 3, {name, "not a regular file"});
    EXPECT_FALSE(fs::exists(project.path("run"))) << name;
  }
  const TinyProject project;
  make_pipe(project.path("p.jsonl"));
  expect_one_line(project.run({"evaluate", "deck.yaml", "--predictions", "p.jsonl"}), 3, {"p.jsonl", "nobody reads"});
}

TEST(RunPlaces, of_folders_are_no_files_and_no_links_to_nothing) {
  const TinyProject project;
  project.write("file", "the user's");
  fs::create_symlink("nowhere", project.path("link"));
  for (const char* key : {"output/folder", "memory/scratch folder"}) {
    expect_one_line(project.train({std::string(key) + "=file"}), 2, {key, "file is no folder"});
    expect_one_line(project.train({std::string(key) + "=link"}, resume), 2, {key, "is a link to nowhere"});
  }
  EXPECT_EQ(text_of_file(project.path("file")), "the user's");
  project.trained();
  expect_one_line(project.run({"export", "--trajectory", "run", "--output", "link"}), 2,
                  {"--output", "exists already"});
  EXPECT_FALSE(fs::exists(project.path("nowhere")));
}

TEST(RunPlaces, of_models_may_hold_links_to_nothing_which_are_replaced) {
  const TinyProject project;
  fs::create_directory(project.path("run"));
  fs::create_symlink("nowhere", project.path("run/final"));
  project.trained();
  EXPECT_TRUE(fs::exists(project.path("run/final/model.safetensors")));
  EXPECT_FALSE(fs::is_symlink(project.path("run/final")));
}

TEST(RunPlaces, of_models_with_what_is_not_replaced_are_refused_before_the_first_step) {
  const TinyProject project;
  const std::string weights = text_of_file(project.path("model/model.safetensors"));
  const auto expect_refused_with = [&](const char* name, const char* what) {
    const std::string place = project.path("run").string() + "/" + name;
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, resume})
      expect_one_line(project.train({}, more), 2, {"output/folder: " + place + ": " + what});
    EXPECT_FALSE(fs::exists(project.path("run/trajectory.zoj")));
    fs::remove_all(place);
  };
  for (const char* name : {"final", "best"}) {
    project.write(std::string("run/") + name, "the user's");
    expect_refused_with(name, "exists and is no folder");
    fs::create_symlink("../model", project.path("run") / name);
    expect_refused_with(name, "is the base model's own folder");
    project.write(std::string("run/") + name + "/notes.txt", "the user's");
    expect_refused_with(name, "exists and is no model folder");
  }
  EXPECT_EQ(text_of_file(project.path("model/model.safetensors")), weights);
  project.write("run/final", "the user's");  // where none is written, nothing is in its way
  EXPECT_EQ(project.train({"output/write models=never"}).exit_code, 0);
  EXPECT_EQ(text_of_file(project.path("run/final")), "the user's");
  // Of the newest run, which no key names.
  fs::create_directory(project.path("runs"));
  fs::rename(project.path("run"), project.path("runs/deck-001"));
  fs::remove(project.path("runs/deck-001/summary.json"));
  expect_one_line(project.train({"output/folder="}, resume), 2, {"runs/deck-001/final: exists and is no folder"});
}

TEST(RunPlaces, that_are_empty_or_no_folders_are_passed_over_by_a_resume) {
  const OneStepDone project;
  fs::create_directory(project.path("runs"));
  fs::rename(project.path("run"), project.path("runs/deck-001"));
  fs::create_directory(project.path("runs/deck-002"));
  project.write("runs/deck-002/.lock", "");  // of a run that was killed before it had begun
  project.write("runs/deck-003", "a file");
  fs::create_symlink("nowhere", project.path("runs/deck-004"));
  fs::copy(project.path("runs/deck-001"), project.path("runs/deck-0009"));  // no name that a run gets
  const ProgramResult resumed = project.train(OneStepDone::of_run({"output/folder="}), resume);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  for (const auto& [name, what] :
       {std::pair{"deck-002", "holds no run"}, {"deck-003", "is no folder"}, {"deck-004", "is no folder"}})
    EXPECT_NE(resumed.out.find("note     " + project.path("runs").string() + "/" + name + " " + what +
                               " and is passed over\n"),
              std::string::npos)
        << resumed.out;
  EXPECT_EQ(project.summary("runs/deck-001").at("steps"), 3);
  EXPECT_EQ(project.train(OneStepDone::of_run({"output/folder="})).exit_code, 0);  // a new run
  EXPECT_EQ(project.summary("runs/deck-005").at("steps"), 3);
}

TEST(Summaries, that_are_damaged_or_of_other_steps_are_no_end_and_are_told_of) {
  const TinyProject project;
  const json expected = project.trained();
  const std::string file = project.path("run/summary.json").string();
  for (const auto& [text, found] : {std::pair{"", "empty; a JSON value"},
                                    {"{\"steps\": 12", "not valid JSON"},
                                    {"{}", "key \"steps\" is missing"},
                                    {"[12]", "an object"},
                                    {"{\"steps\": \"12\"}", "an integer"},
                                    {"{\"steps\": 11}", "it is of 11 steps, and the trajectory has 12"}}) {
    SCOPED_TRACE(text);
    project.write("run/summary.json", text);
    const json status = project.json({"inspect", "run", "--json"}).at("run");
    EXPECT_EQ(status.at("status"), "stopped");
    EXPECT_NE(status.at("summary_problem").get<std::string>().find(found), std::string::npos) << status;
    const ProgramResult resumed = project.train({}, resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    const std::string note = line_of(resumed.out, "note     " + file);
    EXPECT_NE(note.find(found), std::string::npos) << resumed.out;
    EXPECT_NE(note.find("it is no end of this run"), std::string::npos) << resumed.out;
    EXPECT_EQ(resumed.out.find("is finished"), std::string::npos) << resumed.out;
    expect_same_run(project.summary(), expected);
  }
  EXPECT_EQ(project.json({"inspect", "run", "--json"}).at("run").at("summary_problem"), nullptr);
}

TEST(Summaries, without_a_trajectory_are_left_alone) {
  const TinyProject project;
  project.trained();
  fs::remove(project.path("run/trajectory.zoj"));
  for (const std::string& text : {text_of_file(project.path("run/summary.json")), std::string("{")}) {
    project.write("run/summary.json", text);
    expect_one_line(project.train({}, resume), 2,
                    {"run/summary.json", "trajectory.zoj is not there", "remove this one"});
    EXPECT_EQ(text_of_file(project.path("run/summary.json")), text);
  }
  fs::remove(project.path("run/summary.json"));  // as it says
  EXPECT_EQ(project.trained({}, resume).at("steps"), 12);
}

}  // namespace
}  // namespace distzo2
