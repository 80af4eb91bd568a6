// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/error.hpp"
#include "core/layout.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

class Job;  // parallel/job.hpp

// One function a sub-command; each throws Error, and main turns that into one message and an exit code. `config` is
// what the deck says, read once.

struct DeckOptions {
  std::filesystem::path deck;
  std::vector<std::string> sets;  // --set "zo/learning rate=1e-6"
  bool json = false;
};

struct TrainOptions {
  DeckOptions deck;
  bool resume = false;                            // --resume auto, or where that is none of the next two
  std::optional<std::uint64_t> resume_step = {};  // --resume STEP
  std::filesystem::path resume_path = {};         // --resume PATH: the folder of a run or of a checkpoint
  std::vector<std::string> changes = {};          // --change "zo/learning rate": keys that a resume may change
};
/// By all ranks of the job.
ExitCode train_command(const TrainOptions& options, const RunConfig& config, Job& job);

struct EvaluateOptions {
  DeckOptions deck;
  std::filesystem::path model;        // in place of the deck's; empty: the deck's
  std::filesystem::path predictions;  // where not empty: a JSON object an example, its label, prediction and scores
};
ExitCode evaluate_command(const EvaluateOptions& options, RunConfig config);

struct ExportOptions {
  std::filesystem::path trajectory;  // trajectory.zoj or a run folder
  std::filesystem::path model;       // base; empty: the one in the run folder's deck
  std::filesystem::path output;
  std::optional<std::uint64_t> step;  // none: the last
  bool json = false;
};
ExitCode export_command(const ExportOptions& options);

struct VerifyOptions {
  std::filesystem::path trajectory;  // trajectory.zoj or a run folder
  std::filesystem::path model;       // base; empty: the one in the run folder's deck
  bool json = false;
};
/// Throws Error (mismatch) where a replay gives another digest than the trajectory has.
ExitCode verify_command(const VerifyOptions& options);

struct InspectOptions {
  std::filesystem::path path;  // trajectory.zoj, a run folder, or a model folder
  bool json = false;
};
ExitCode inspect_command(const InspectOptions& options);

ExitCode validate_command(const RunConfig& config);

struct PlanOptions {
  DeckOptions deck;
  std::optional<std::uint64_t> gpu_bytes;  // plan for a device with this much free memory
  std::filesystem::path machine;           // where not empty: plan for this machine file, and predict a step's time
  std::optional<Layout> layout;            // of the prediction; none: one rank
};
ExitCode plan_command(const PlanOptions& options, const RunConfig& config);

struct DeviceOptions {
  bool json = false;
};
/// The GPU that a program for GPUs computes on.
ExitCode device_command(const DeviceOptions& options);

struct DeckDocsOptions {
  bool starter = false;
};
ExitCode deck_docs_command(const DeckDocsOptions& options);

/// What `bench step` measures, and how: its --help.
extern const char* const bench_step_text;
struct BenchStepOptions {
  DeckOptions deck;
  std::uint32_t repeats = 5;
  std::uint32_t noise_pairs = 32;  // steps over which the noise of bf16 compute is measured; 0: it is not
};
ExitCode bench_step_command(const BenchStepOptions& options, const RunConfig& config);

struct BenchStreamOptions {
  DeckOptions deck;
  std::uint32_t repeats = 5;
};
/// What `bench stream` measures, and how: its --help.
extern const char* const bench_stream_text;
ExitCode bench_stream_command(const BenchStreamOptions& options, const RunConfig& config);

struct BenchSpeedOptions {
  DeckOptions deck;
};
/// What `bench speed` measures, and how: its --help.
extern const char* const bench_speed_text;
ExitCode bench_speed_command(const BenchSpeedOptions& options, const RunConfig& config);

struct BenchMachineOptions {
  std::filesystem::path output;         // empty: the file is printed
  std::filesystem::path scratch = ".";  // the folder whose disk is measured
};
/// What `bench machine` measures, and how: its --help.
extern const char* const bench_machine_text;
ExitCode bench_machine_command(const BenchMachineOptions& options);

}  // namespace distzo2
