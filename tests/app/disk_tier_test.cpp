// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/store_on_disk.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

// A model of random weights so small that only a budget chosen to the tenth of a MiB leaves no room for it.

constexpr const char* deck_text =
    "model: {shape: llama-tiny, weights: random, seed: 1}\n"
    "data: {task: random tokens, sequence length: 16, train examples: 20}\n"
    "zo: {steps: 24, batch: 2, epsilon: 1e-3, learning rate: 1e-2, kind: gaussian}\n"
    "output: {folder: run}\n";

using DeckSettings = std::vector<std::string>;

nlohmann::json summary_of(const TinyProject& project, DeckSettings sets, const std::string& run) {
  sets.push_back("output/folder=" + run);
  const ProgramResult result = project.run(train_words("disk.yaml", sets));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return project.summary(run);
}

const DeckSettings on_disk{"memory/host budget=129.3 MiB"};

TEST(DiskTier, gives_the_bits_of_a_resident_run) {
  const TinyProject project;
  project.write("disk.yaml", deck_text);
  const nlohmann::json resident = summary_of(project, {}, "resident");
  EXPECT_EQ(resident["bytes_read"], 0);
  const std::vector<DeckSettings> others{on_disk,
                                         {on_disk[0], "memory/write back every=1"},
                                         {on_disk[0], "memory/buffers=3"},
                                         {"memory/host budget=129 MiB", "memory/groups=on"},
                                         {"memory/staging=always"},
                                         {"memory/staging=always", "memory/groups=on"}};
  for (std::size_t i = 0; i < others.size(); ++i) {
    const nlohmann::json other = summary_of(project, others[i], "run" + std::to_string(i));
    EXPECT_EQ(other["theta_digest"], resident["theta_digest"]) << i;
    EXPECT_EQ(other["trajectory_digest"], resident["trajectory_digest"]) << i;
    if (i < 4) {
      EXPECT_GT(other["bytes_read"], 0) << i;
    }
  }
}

TEST(DiskTier, removes_its_store_at_a_good_end_and_keeps_it_where_it_is_told) {
  const TinyProject project;
  project.write("disk.yaml", deck_text);
  summary_of(project, on_disk, "run");
  EXPECT_FALSE(fs::exists(project.path("run/store")));
  DeckSettings sets = on_disk;
  sets.push_back("memory/keep store=true");
  summary_of(project, sets, "kept");
  EXPECT_TRUE(fs::exists(project.path("kept/store/chunks.bin")));
  sets = on_disk;
  sets.push_back("memory/scratch folder=" + project.path("scratch").string());
  summary_of(project, sets, "elsewhere");
  EXPECT_FALSE(fs::exists(project.path("elsewhere/store")));
  EXPECT_TRUE(fs::is_empty(project.path("scratch")));
}

TEST(DiskTier, goes_on_after_kills_with_the_digest_of_an_uninterrupted_run) {
  const TinyProject project;
  project.write("disk.yaml", deck_text);
  const nlohmann::json whole = summary_of(project, on_disk, "whole");
  DeckSettings sets = on_disk;
  sets.push_back("output/folder=run");
  const std::vector<std::string> words = train_words("disk.yaml", sets, {"--resume", "auto"});
  for (const std::uintmax_t records : {5U, 9U, 17U}) EXPECT_TRUE(kill_at_bytes(project, words, 600 + 64 * records));
  // And what a crash of the machine leaves of a chunk.
  {
    std::fstream store(project.path("run/store/chunks.bin"), std::ios::in | std::ios::out | std::ios::binary);
    store.seekp(3 * 4096 + 100);
    store.put('x');
  }
  const ProgramResult resumed = project.run(words);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(project.summary("run")["theta_digest"], whole["theta_digest"]);
  EXPECT_EQ(project.summary("run")["trajectory_digest"], whole["trajectory_digest"]);
}

/// The names of what is in a folder.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

class MovedRun : public StoreOnDisk {
protected:
  MovedRun() {
    take_three_steps();
    EXPECT_EQ(names_in(project_.path("scratch")).size(), 1U);
  }
  ProgramResult resume_in(const std::string& run, Words sets = {}) {
    sets.emplace_back("checkpoint/time limit=none");
    const ProgramResult result = project_.run(train_words(run + "/deck.yaml", sets, {"--resume", "auto"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(project_.summary(run).at("theta_digest"), whole_.at("theta_digest"));
    return result;
  }
};

TEST_F(MovedRun, takes_its_store_along) {
  const std::string was = *names_in(project_.path("scratch")).begin();
  fs::copy(project_.path("run"), project_.path("copy"));
  resume_in("copy");  // with a store of its own, made anew
  fs::rename(project_.path("run"), project_.path("moved"));
  const ProgramResult resumed = resume_in("moved");
  EXPECT_NE(resumed.out.find("note     this run's store is moved from " + project_.path("scratch/" + was).string()),
            std::string::npos)
      << resumed.out;
  EXPECT_LT(project_.summary("moved").at("bytes_written"), project_.summary("copy").at("bytes_written"));
  EXPECT_EQ(names_in(project_.path("scratch")), std::set<std::string>());
  EXPECT_FALSE(fs::exists(project_.path("moved/store.path")));
}

TEST_F(MovedRun, takes_its_store_to_another_scratch_folder) {
  resume_in("run", {"memory/scratch folder=other"});
  EXPECT_EQ(names_in(project_.path("scratch")), std::set<std::string>());
  EXPECT_EQ(names_in(project_.path("other")), std::set<std::string>());
}

TEST_F(MovedRun, takes_its_store_from_and_to_its_own_folder) {
  const Words in_its_folder{"memory/scratch folder=", "checkpoint/time limit=0.001 s"};
  EXPECT_EQ(project_.train(with(in_its_folder), {"--resume", "auto"}).exit_code, 75);
  EXPECT_EQ(names_in(project_.path("scratch")), std::set<std::string>());
  EXPECT_TRUE(fs::exists(project_.path("run/store")));
  const ProgramResult resumed = resume_in("run", {"memory/scratch folder=other"});
  EXPECT_NE(resumed.out.find("note     this run's store is moved from " + project_.path("run/store").string() + " to "),
            std::string::npos)
      << resumed.out;
  EXPECT_FALSE(fs::exists(project_.path("run/store")));
  EXPECT_EQ(names_in(project_.path("other")), std::set<std::string>());
}

TEST_F(MovedRun, remembers_each_place_of_its_stores_until_its_end) {
  const std::string name = *names_in(project_.path("scratch")).begin();
  for (const char* place : {"other/", "third/"}) {  // where a store stands none is moved to
    fs::create_directory(project_.path(place));
    fs::copy(project_.path("scratch/" + name), project_.path(place + name));
  }
  fs::copy(project_.path("scratch/" + name), project_.path("run/store"));
  for (const char* place : {"other", "third"}) {
    const Words sets = with({"memory/scratch folder=" + std::string(place), "checkpoint/time limit=0.001 s"});
    EXPECT_EQ(project_.train(sets, {"--resume", "auto"}).exit_code, 75);
  }
  const ProgramResult resumed = resume_in("run");
  for (const fs::path& left :
       {project_.path("scratch/" + name), project_.path("other/" + name), project_.path("run/store")}) {
    EXPECT_NE(resumed.out.find("in " + left.string() + " is not used any more and goes at the run's end"),
              std::string::npos)
        << resumed.out;
    EXPECT_FALSE(fs::exists(left));
  }
  EXPECT_FALSE(fs::exists(project_.path("third/" + name)));
  EXPECT_FALSE(fs::exists(project_.path("run/store.path")));
}

TEST_F(MovedRun, leaves_its_store_to_the_run_that_it_is_a_copy_of) {
  const std::set<std::string> stores = names_in(project_.path("scratch"));
  fs::copy(project_.path("run"), project_.path("copy"));
  resume_in("copy");
  EXPECT_EQ(names_in(project_.path("scratch")), stores);
  resume_in("run");
  EXPECT_LT(project_.summary("run").at("bytes_written"), project_.summary("copy").at("bytes_written"));
  EXPECT_EQ(names_in(project_.path("scratch")), std::set<std::string>());
}

TEST_F(MovedRun, says_where_a_store_is_left_that_it_needs_no_more) {
  const fs::path store = project_.path("scratch") / *names_in(project_.path("scratch")).begin();
  const ProgramResult resumed = resume_in("run", {"memory/host budget=auto", "memory/keep store=true"});
  EXPECT_NE(resumed.out.find("is left in " + store.string() + ": it is not used any more; remove it"),
            std::string::npos)
      << resumed.out;
  EXPECT_TRUE(fs::exists(store));
}

TEST_F(MovedRun, removes_a_store_that_it_needs_no_more_at_its_end) {
  const fs::path store = project_.path("scratch") / *names_in(project_.path("scratch")).begin();
  const ProgramResult resumed = resume_in("run", {"memory/host budget=auto"});
  EXPECT_NE(resumed.out.find("in " + store.string() + " is not used any more and goes at the run's end"),
            std::string::npos)
      << resumed.out;
  EXPECT_FALSE(fs::exists(store));
  EXPECT_FALSE(fs::exists(project_.path("run/store.path")));
}

TEST_F(MovedRun, ends_well_where_a_store_cannot_be_removed) {
  const std::string store = (project_.path("scratch") / *names_in(project_.path("scratch")).begin()).string();
  project_.write(fs::path(store) / "store.json.partial/file", "in the way");
  for (const char* memory : {"memory/write back every=1", "memory/host budget=auto"}) {  // on disk, and without
    fs::copy(project_.path("run"), project_.path("kept"), fs::copy_options::recursive);
    const ProgramResult resumed = resume_in("run", {memory});
    EXPECT_NE(resumed.out.find("note     " + store + "/store.json.partial: cannot be removed: "), std::string::npos)
        << resumed.out;
    EXPECT_NE(resumed.out.find("; " + store + " is not used any more: remove it\n"), std::string::npos) << resumed.out;
    EXPECT_NE(line_of(resumed.out, "done "), "") << resumed.out;
    EXPECT_TRUE(fs::exists(project_.path("run/store.path")));
    fs::remove_all(project_.path("run"));
    fs::rename(project_.path("kept"), project_.path("run"));
  }
}

TEST_F(MovedRun, passes_over_a_record_of_places_that_are_none) {
  const std::string long_line(50000, 'x');
  for (const std::string& record : {long_line + "\n" + long_line + "\n", std::string(std::size_t{2} << 20, '/')}) {
    project_.write("run/store.path", record);
    EXPECT_EQ(project_.train(with({"checkpoint/time limit=0.001 s"}), {"--resume", "auto"}).exit_code, 75);
    EXPECT_LT(size_of(project_.path("run/store.path")), 4096U);
  }
  resume_in("run");
}

class UsersFiles : public StoreOnDisk {};

TEST_F(UsersFiles, in_the_places_of_stores_are_left_alone) {
  const char* const users = "the user's";
  project_.write("run/store/chunks.bin", users);
  project_.write("run/store-rank5/chunks.bin", users);
  expect_one_line(project_.train(with({"memory/scratch folder="})), 3,
                  {project_.path("run/store/chunks.bin").string(), "is in a store's place and is none"});
  EXPECT_EQ(project_.trained(sets_, {"--resume", "auto"}).at("theta_digest"), whole_.at("theta_digest"));
  for (const char* file : {"run/store/chunks.bin", "run/store-rank5/chunks.bin"})
    EXPECT_EQ(text_of_file(project_.path(file)), users);
}

/// Of a model in a folder, whose weights may be changed.
class ChangedBase : public StoreOnDisk {
protected:
  /// Changes the last element of these tensors, beyond the 4 KiB by which a store tells models apart.
  void change_model(const std::vector<std::string>& tensors) {
    std::string file = model_;
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
    const nlohmann::json header = nlohmann::json::parse(file.substr(8, header_bytes));
    for (const std::string& tensor : tensors) {
      const nlohmann::json& place = header.at(tensor).at("data_offsets");
      ASSERT_GT(place.at(1).get<std::uint64_t>() - place.at(0).get<std::uint64_t>(), 4096U) << tensor;
      char& last = file[8 + header_bytes + place.at(1).get<std::uint64_t>() - 2];  // the top of the mantissa
      last = static_cast<char>(last ^ 0x40);
    }
    project_.write("model/model.safetensors", file);
  }
  void restore_model() { project_.write("model/model.safetensors", model_); }

  const Words of_blocks_{"model.layers.0.mlp.gate_proj.weight", "model.layers.1.mlp.gate_proj.weight"};
};

TEST_F(ChangedBase, is_refused_where_the_store_has_updates) {
  take_three_steps();
  const std::string trajectory = text_of_file(project_.path("run/trajectory.zoj"));
  change_model(of_blocks_);
  expect_one_line(project_.train(sets_, {"--resume", "auto"}), 2,
                  {"cannot go on with this run", project_.path("model").string(), "other weights than the run began"});
  EXPECT_EQ(text_of_file(project_.path("run/trajectory.zoj")), trajectory);
  restore_model();
  expect_going_on(whole_);
}

TEST_F(ChangedBase, is_refused_where_the_import_had_not_ended) {
  if (!can_preload) return;
  ASSERT_EQ(project_.train(sets_, {}, with_fault("pwritev chunks.bin 8 kill")).signal, SIGKILL);
  change_model(of_blocks_);
  const Words resume{"--resume", "auto"};
  expect_one_line(project_.train(sets_, resume), 3, {"scratch/", "the store holds other weights", "remove the store"});
  fs::remove_all(project_.path("scratch"));
  const nlohmann::json changed = project_.trained(sets_, resume);
  EXPECT_EQ(changed.at("theta_digest"),
            project_.trained({"output/folder=resident", "output/evaluate every=0"}).at("theta_digest"));
  EXPECT_NE(changed.at("theta_digest"), whole_.at("theta_digest"));
  restore_model();
}

TEST(DiskTier, takes_no_chunk_of_another_run_that_had_the_same_path) {
  const TinyProject project;
  project.write("disk.yaml", deck_text);
  const nlohmann::json whole = summary_of(project, on_disk, "whole");
  DeckSettings sets = on_disk;
  for (const char* set : {"memory/write back every=1", "output/folder=run"}) sets.emplace_back(set);
  sets.push_back("memory/scratch folder=" + project.path("scratch").string());
  const std::vector<std::string> resume{"--resume", "auto"};
  EXPECT_TRUE(kill_at_bytes(project, train_words("disk.yaml", sets, resume), 600 + 64 * 9));
  fs::rename(project.path("run"), project.path("first"));
  DeckSettings other = sets;
  other.emplace_back("zo/seed=2");
  EXPECT_TRUE(kill_at_bytes(project, train_words("disk.yaml", other, resume), 600 + 64 * 7));
  fs::remove_all(project.path("run"));
  fs::rename(project.path("first"), project.path("run"));
  const ProgramResult resumed = project.run(train_words("disk.yaml", sets, resume));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(project.summary("run")["theta_digest"], whole["theta_digest"]);
  EXPECT_EQ(project.summary("run")["trajectory_digest"], whole["trajectory_digest"]);
}

}  // namespace
}  // namespace distzo2
