// SPDX-License-Identifier: BSD-3-Clause
#include "app/resume.hpp"

#include "app/base_storage.hpp"
#include "core/error.hpp"

#include <fmt/format.h>

#include <optional>

namespace distzo2 {
namespace {

std::string text_of(const std::vector<KeyValue>& keys) {
  std::string text;
  for (const KeyValue& k : keys) text += k.key + ": " + k.value + "\n";
  return text;
}

/// "folder X" or "shape Y": where the deck's model comes from.
std::string origin_of(const ModelSection& model) {
  return model.random() ? "shape " + model.shape : "folder " + model.folder.string();
}

}  // namespace

std::uint64_t theta0_digest(const RunConfig& config, PlacedModel& placed, const std::optional<Trajectory>& found,
                            Communicator& sharers, const ByteProgress& progress) {
  ParameterStore& store = placed.engine().store();
  if (!placed.found_chunks()) return store.shared_digest();
  const std::uint64_t base =
      sharers.broadcast(sharers.is_first() ? base_digest(weight_source(config), store.table(), store.rule(), progress)
                                           : std::uint64_t{0});
  const bool began_otherwise = found && found->header.theta0_digest != base;
  if (!began_otherwise && !placed.is_advanced() && store.shared_digest() != base)
    throw Error(ExitCode::file,
                fmt::format("{}: the store holds other weights than model/{}: the model was changed after they were "
                            "taken from it; remove the store, which is then made again",
                            placed.disk_folder().string(), origin_of(config.model)));
  return base;
}

TrajectoryHeader trajectory_header(const RunConfig& config, const LoadedData& data, const Engine& engine,
                                   std::uint64_t theta0_digest) {
  TrajectoryHeader h;
  h.rule = engine.store().rule();
  h.step = {config.zo.difference, static_cast<int>(config.zo.directions), config.zo.epsilon};
  h.objective = data.objective;
  h.theta0_digest = theta0_digest;
  h.deck_digest = mathematical_digest(config);
  h.data_digest = data.train->digest;
  h.decay_mask = decay_mask_digest(engine.store().table());
  h.mathematical_keys = text_of(mathematical_keys(config));
  h.fingerprint = engine.arithmetic_fingerprint();
  return h;
}

void check_same_decay(const TrajectoryHeader& was, std::uint64_t mask, const std::filesystem::path& trajectory) {
  if (was.decay_mask && *was.decay_mask != mask)
    throw Error(ExitCode::file, fmt::format("{}: decay mask {:016x} in its header; accepted is {:016x}, the mask of "
                                            "this model's matrices",
                                            trajectory.string(), *was.decay_mask, mask));
}

std::string check_same_run(const TrajectoryHeader& was, const TrajectoryHeader& now, const RunConfig& config,
                           const std::filesystem::path& trajectory, std::uint32_t steps, RunChanges& changes) {
  if (was.objective != now.objective)
    refuse_resume(trajectory, "the task's objective is not the one that the run began with");
  if (was.theta0_digest != now.theta0_digest)
    refuse_resume(trajectory,
                  fmt::format("model/{} holds other weights than the run began with", origin_of(config.model)));
  check_same_examples(was, now.data_digest, trajectory, steps, changes);
  check_same_decay(was, now.decay_mask.value(), trajectory);
  if (was.fingerprint == now.fingerprint) return {};
  return fmt::format(
      "the arithmetic changed from \"{}\" to \"{}\": losses can differ in their last bits from an "
      "uninterrupted run's",
      was.fingerprint, now.fingerprint);
}

void check_same_evaluations(const RunFolder& folder, const LoadedData& data) {
  for (const RecordedEvaluation& r : recorded_evaluations(folder.metrics())) {
    const std::optional<ExampleSet>& now = r.set == "dev" ? data.dev : data.test;
    if (r.data_digest && now && now->digest != *r.data_digest)
      throw Error(ExitCode::usage,
                  fmt::format("{}: cannot go on with this run: data/{} {} gives other examples than those that step {} "
                              "was evaluated on",
                              folder.path.string(), r.set, now->path.string(), r.step));
  }
}

void check_replayed(const DigestRecord& recorded, std::uint64_t digest, const std::filesystem::path& trajectory) {
  if (recorded.theta_digest != digest)
    throw Error(ExitCode::mismatch, fmt::format("{}: the replay of step {} has digest {:016x}, the run had {:016x}",
                                                trajectory.string(), recorded.t, digest, recorded.theta_digest));
}

void replay(Engine& engine, const std::vector<StepRecord>& records) {
  for (const StepRecord& r : records) engine.store().append(r);
  engine.store().level_versions();
  engine.store().apply_pending();
}

}  // namespace distzo2
