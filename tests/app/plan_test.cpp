// SPDX-License-Identifier: BSD-3-Clause
// `distzo2 plan` says where everything will lie, for any size, without allocating any of it.
#include <gtest/gtest.h>

#include "app/memory_budget.hpp"
#include "io/units.hpp"
#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path deck(const std::string& name) {
  return test_paths::sources / "inputs/streaming" / name;
}

/// A plan is printed in any case, and ends as the run would: in an error where this machine's disk is too small.
int exit_code_of(const Json& plan) {
  const Json& scratch = plan.at("scratch");
  return scratch.at("needed_bytes") > scratch.at("free_bytes") ? 3 : 0;
}

Json plan_of(const std::string& name, const std::vector<std::string>& more = {}) {
  const TinyProject project;
  std::vector<std::string> words{"plan", deck(name).string(), "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const ProgramResult result = project.run(words);
  const Json plan = Json::parse(result.out);
  EXPECT_EQ(result.exit_code, more.empty() ? exit_code_of(plan) : 0) << result.err;
  return plan;
}

std::uint64_t bytes(const Json& plan, const char* tier) {
  return plan.at("tiers").at(tier).at("bytes").get<std::uint64_t>();
}

std::uint64_t sum_of_terms(const Json& plan, const std::string& where) {
  std::uint64_t sum = 0;
  for (const Json& term : plan.at("terms"))
    if (term.at("where") == where) sum += term.at("bytes").get<std::uint64_t>();
  return sum;
}

TEST(Plan, every_deck_of_streaming_has_one_within_its_budgets) {
  int decks = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(deck(""))) {
    SCOPED_TRACE(entry.path().filename().string());
    const Json plan = plan_of(entry.path().filename().string());
    EXPECT_EQ(sum_of_terms(plan, "host"), plan.at("host").at("bytes"));
    EXPECT_LE(plan.at("host").at("bytes"), plan.at("host").at("budget"));
    EXPECT_EQ(plan.at("host").at("source"), "memory/host budget");
    ++decks;
  }
  EXPECT_EQ(decks, 6);
}

TEST(Plan, the_decks_use_the_tiers_that_they_are_named_for) {
  const Json resident = plan_of("resident.yaml");
  EXPECT_EQ(bytes(resident, "host") + bytes(resident, "disk"), 0u);
  const Json staged = plan_of("staged.yaml");
  EXPECT_GT(bytes(staged, "resident"), 0u);
  EXPECT_GT(bytes(staged, "host"), 0u);
  EXPECT_EQ(bytes(staged, "disk"), 0u);
  EXPECT_EQ(staged.at("machine"), "host with staging");
  const Json disk = plan_of("disk.yaml");
  EXPECT_GT(bytes(disk, "disk"), 8'000'000'000u);
  EXPECT_GT(disk.at("scratch").at("needed_bytes"), bytes(disk, "disk"));
  // Two steps, and the digests of the imported and of the final theta; random weights are not written as a model.
  EXPECT_EQ(disk.at("run").at("disk").at("read"),
            2 * disk.at("step").at("disk").at("read").get<std::uint64_t>() + 2 * bytes(disk, "disk"));
}

TEST(Plan, a_gpu_holds_opt_13b_and_opt_175b) {
  const Json small = plan_of("opt_13b_one_gpu.yaml", {"--gpu", "8 GB"});
  EXPECT_EQ(small.at("machine"), "device");
  EXPECT_LE(small.at("device").at("bytes"), 8'000'000'000u);
  EXPECT_EQ(sum_of_terms(small, "device"), small.at("device").at("bytes"));
  const Json large = plan_of("opt_175b_one_gpu.yaml", {"--gpu", "24 GB"});
  EXPECT_EQ(bytes(large, "disk"), 0u);
  EXPECT_LE(large.at("device").at("bytes"), 22'000'000'000u);
  const Json disk = plan_of("opt_175b_disk.yaml", {"--gpu", "24 GB"});
  EXPECT_GT(bytes(disk, "disk"), 200'000'000'000u);
  const Json groups = plan_of("opt_175b_one_gpu.yaml", {"--gpu", "24 GB", "--set", "memory/device budget=8 GB"});
  EXPECT_EQ(groups.at("groups"), true);
  EXPECT_LE(groups.at("device").at("bytes"), 8'000'000'000u);
  const Json automatic = plan_of("opt_13b_one_gpu.yaml", {"--gpu", "40 GB", "--set", "memory/device budget=auto"});
  EXPECT_EQ(automatic.at("device").at("budget"), 40'000'000'000u - (1u << 30));
  EXPECT_EQ(bytes(automatic, "host"), 0u);
}

TEST(Plan, says_what_bounds_and_what_would_do) {
  const TinyProject project;
  const ProgramResult text = project.run({"plan", deck("disk.yaml").string()});
  EXPECT_EQ(text.exit_code, exit_code_of(plan_of("disk.yaml"))) << text.err;
  for (const char* part : {"resident", "disk", "streaming by whole blocks", "4.0 GiB (memory/host budget)", "scratch",
                           "2 steps: reads", "at stated rates computing takes"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " is not in: " << text.out;
  const ProgramResult small = project.run({"plan", deck("disk.yaml").string(), "--set", "memory/host budget=100 MiB"});
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_NE(small.err.find("memory/host budget: 100 MiB cannot hold"), std::string::npos) << small.err;
  EXPECT_NE(small.err.find("the smallest that would do is "), std::string::npos) << small.err;
  const ProgramResult no_unit = project.run({"plan", deck("disk.yaml").string(), "--gpu", "80"});
  EXPECT_EQ(no_unit.exit_code, 2);
  EXPECT_NE(no_unit.err.find("\"80\" is no amount of memory"), std::string::npos) << no_unit.err;
}

TEST(Plan, says_how_often_blocks_on_disk_are_stored_and_why) {
  const TinyProject project;
  const auto text_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"plan", deck("disk.yaml").string()};
    words.insert(words.end(), more.begin(), more.end());
    return project.run(words).out;
  };
  const Json plan = plan_of("disk.yaml");
  const auto every = plan.at("write_back_every").get<int>();
  EXPECT_GT(every, 1);
  EXPECT_DOUBLE_EQ(plan.at("cost").at("write_s"), static_cast<double>(bytes(plan, "disk")) / 1.5e9);
  const std::string chosen = text_of({});
  for (const std::string& part :
       {"stored every " + std::to_string(every) + " steps\n",
        "stored    every " + std::to_string(every) + " steps (auto): at stated rates computing",
        std::string("the disk at 1.5 GB/s ")})
    EXPECT_NE(chosen.find(part), std::string::npos) << part << " is not in: " << chosen;
  for (const auto& [given, part] : {std::pair{"1", "stored    every step (memory/write back every): "},
                                    std::pair{"3", "stored    every 3 steps (memory/write back every): "}}) {
    const std::string text = text_of({"--set", std::string("memory/write back every=") + given});
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
}

TEST(Plan, of_a_gpu_too_small_names_the_option) {
  expect_one_line(TinyProject().run({"plan", deck("opt_13b_one_gpu.yaml").string(), "--gpu", "1 B", "--set",
                                     "memory/device budget=auto"}),
                  2, {"--gpu", "the smallest that would do is "});
}

TEST(Plan, that_cannot_be_made_is_refused_alike_by_plan_validate_and_train) {
  const TinyProject project;
  const auto refusal = [&](const std::string& command) {
    const ProgramResult result = project.run({command, "deck.yaml", "--set", "memory/host budget=1 MiB"});
    expect_one_line(result, 2, {"memory/host budget: 1 MiB cannot hold", "the smallest that would do is "});
    return result;
  };
  const ProgramResult plan = refusal("plan"), validation = refusal("validate");
  EXPECT_EQ(validation.err, plan.err);
  EXPECT_EQ(validation.out, "");
  EXPECT_EQ(refusal("train").err, plan.err);
}

TEST(Plan, notes_a_host_budget_beyond_what_the_machine_has) {
  RunConfig config;
  const MemorySources sources{[](const std::string& path) -> std::optional<std::string> {
                                if (path != "/proc/meminfo") return std::nullopt;
                                return "MemTotal: 32 kB\nMemAvailable: 20971520 kB\n";
                              },
                              [](const std::string&) { return std::nullopt; }};
  EXPECT_EQ(host_budget_note(config, sources), "");  // auto
  config.memory.host_budget = ByteCount{std::uint64_t{20} << 30};
  EXPECT_EQ(host_budget_note(config, sources), "");
  config.memory.host_budget = ByteCount{std::uint64_t{21} << 30};
  EXPECT_EQ(host_budget_note(config, sources),
            "memory/host budget: 21.0 GiB is more than a process can have here: 20.0 GiB (the memory that is available "
            "(MemAvailable))");

  const TinyProject project;
  const std::string note = "memory/host budget: 900.0 TiB is more than a process can have here: ";
  const std::vector<std::string> large{"--set", "memory/host budget=900 TiB"};
  for (const char* command : {"plan", "validate", "train"}) {
    const ProgramResult result = project.run({command, "deck.yaml", large[0], large[1]});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find(note), std::string::npos) << result.out;
  }
  EXPECT_EQ(project.run({"plan", "deck.yaml", large[0], large[1], "--gpu", "8 GB"}).out.find(note), std::string::npos);
}

TEST(Plan, without_streaming_leaves_keys_unused_and_notes_say_so) {
  const TinyProject project;
  const std::vector<std::string> given{"output/trace file=trace.json", "memory/buffers=3", "memory/groups=on",
                                       "memory/write back every=2"};
  const auto said = [&](const std::string& command, const std::vector<std::string>& sets) {
    std::vector<std::string> words = train_words("deck.yaml", sets);
    words.front() = command;
    const ProgramResult result = project.run(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  for (const char* command : {"validate", "train"}) {
    const std::string text = said(command, given);
    for (const std::string& set : given) {
      const std::string key = set.substr(0, set.find('='));
      const std::size_t at = text.find(key + ": all parameters stay in memory and nothing streams");
      ASSERT_NE(at, std::string::npos) << key << " is not in: " << text;
      EXPECT_EQ(text.substr(text.rfind('\n', at) + 1, 5), "note ") << text;
    }
    EXPECT_EQ(said(command, {"output/folder=plain"}).find("nothing streams"), std::string::npos);
    const std::vector<std::string> staged{given[0], given[1], "memory/staging=always", "output/folder=staged"};
    EXPECT_FALSE(fs::exists(project.path("trace.json")));
    EXPECT_EQ(said(command, staged).find("nothing streams"), std::string::npos);
  }
  EXPECT_TRUE(fs::exists(project.path("trace.json")));
}

TEST(Plan, ends_as_the_run_would_where_the_store_finds_no_room) {
  const TinyProject project;
  project.write("disk.yaml",
                "model: {shape: llama-tiny, weights: random, seed: 1}\n"
                "data: {task: random tokens, sequence length: 16, train examples: 20}\n"
                "zo: {steps: 3, batch: 2, epsilon: 1e-3, learning rate: 1e-2}\n"
                "memory: {host budget: 129.3 MiB, scratch folder: /proc}\n"  // of no room at all
                "output: {folder: run}\n");
  const ProgramResult plan = project.run({"plan", "disk.yaml"}), run = project.run({"train", "disk.yaml"}),
                      validation = project.run({"validate", "disk.yaml"});
  expect_one_line(plan, 3, {"/proc/run-", "more are needed", "0 B are free", "memory/scratch folder"});
  EXPECT_EQ(plan.err, run.err);
  EXPECT_EQ(plan.err, validation.err);
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_FALSE(fs::exists(project.path("run")));
  EXPECT_NE(plan.out.find("streaming by"), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find(": not enough\n"), std::string::npos) << plan.out;
  EXPECT_EQ(Json::parse(project.run({"plan", "disk.yaml", "--json"}).out).at("scratch").at("free_bytes"), 0);
  // What is free on another machine is not known.
  EXPECT_GT(bytes(plan_of("opt_175b_disk.yaml", {"--gpu", "24 GB", "--set", "memory/scratch folder=/proc"}), "disk"),
            0U);
}

TEST(Plan, is_what_validate_says_of_memory) {
  const TinyProject project;
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"memory/host budget=1 GiB"},
           {"memory/host budget=1 GiB", "precision/storage=bf16", "precision/compute=bf16"},
           {"memory/host budget=1 GiB", "memory/staging=always"}}) {
    std::vector<std::string> words = train_words("deck.yaml", sets);
    words.front() = "plan";
    words.emplace_back("--json");
    const Json plan = project.json(words);
    words.front() = "validate";
    words.pop_back();
    const std::uint64_t parameters = bytes(plan, "resident") + bytes(plan, "host");
    const auto of = [&](const char* place) {
      const Json& there = plan.at(place);
      return std::string("; on the ") + place + " " + bytes_text(there.at("bytes").get<std::uint64_t>()) + " of " +
             bytes_text(there.at("budget").get<std::uint64_t>()) + " in all";
    };
    EXPECT_EQ(line_of(project.run(words).out, "memory    "), bytes_text(parameters) + " of parameters" +
                                                                 (plan.at("machine") == "device" ? of("device") : "") +
                                                                 of("host") + " (memory/host budget)");
  }
}

TEST(Plan, a_model_from_a_folder_is_planned_with_its_data) {
  const TinyProject project;
  const Json plan = project.json({"plan", "deck.yaml", "--json"});
  EXPECT_EQ(bytes(plan, "host") + bytes(plan, "disk"), 0u);
  EXPECT_FALSE(fs::exists(project.path("run")));
  // With a budget of its own the tiny model is staged, and its dev and test sets are passes as well.
  const Json staged = project.json({"plan", "deck.yaml", "--json", "--set", "memory/staging=always"});
  EXPECT_GT(bytes(staged, "host"), 0u);
  EXPECT_EQ(staged.at("device").at("source"), "the least that works");
}

}  // namespace
}  // namespace distzo2
