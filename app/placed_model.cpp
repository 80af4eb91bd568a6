// SPDX-License-Identifier: BSD-3-Clause
#include "app/placed_model.hpp"

#include "app/memory_budget.hpp"
#include "app/output_place.hpp"
#include "core/error.hpp"
#include "core/kokkos_scope.hpp"
#include "io/block_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace distzo2 {

namespace fs = std::filesystem;

namespace {

std::function<void(std::uint64_t, std::uint64_t)> told_by(const ByteProgress& progress, const char* what) {
  if (!progress) return nullptr;
  return [=](std::uint64_t done, std::uint64_t total) { progress(what, done, total); };
}

}  // namespace

PlacedModel::PlacedModel(const RunConfig& config, const ModelConfig& model, const MemoryPlan& plan, Compute compute,
                         const fs::path& store, std::span<const StepRecord> records, const ByteProgress& progress,
                         NodeMemory* node, const Restore& restore, bool temporary) {
  const WeightSource weights = weight_source(config);
  const UpdateRule rule = update_rule(config);
  if (plan.disk_bytes > 0) {
    BlockFileOptions options;
    options.identity = weights.identity();
    options.spare_slots = plan.spare_slots;
    options.temporary = temporary;
    options.callers = store_callers(host_concurrency());
    options.covered = static_cast<std::uint32_t>(records.size());
    if (node == nullptr || node->owner() == 0) histories_ = update_histories(records);
    options.history = [this](std::uint32_t version) {
      if (!trajectories_.empty()) return trajectories_.front()->history(version);
      const std::lock_guard lock(mutex_);
      return version < histories_.size() ? histories_[version] : 0;  // nobody goes on with a store without a trajectory
    };
    options.progress = told_by(progress, "checking the store");
    options.before_write = [this](std::uint32_t version) {
      if (version <= synced_) return;
      for (TrajectoryWriter* trajectory : trajectories_) trajectory->sync();
      synced_ = version;
    };
    disk_ = open_disk_store(node, store, plan.placement.chunks, rule.storage, options);
    for (const Unit& unit : plan.placement.units)
      for (int c = unit.chunk_begin; unit.tier == Tier::disk && c < unit.chunk_end; ++c)
        if (disk_->holds(c)) {
          found_chunks_ = true;
          advanced_ = advanced_ || disk_->version(c) > 0;
        }
  }
  if (plan.machine == Machine::device) device_ = make_device_memory();
  engine_ =
      std::make_unique<Engine>(model, rule, compute, plan.placement, disk_.get(), UnitPipeline::Options{},
                               EngineDevice{device_.get(), nullptr, plan.batch, config.precision.reproducible}, node);
  std::vector<bool> restored;
  if (restore) restored = restore(engine_->store(), disk_.get());
  if (std::ranges::find(restored, true) != restored.end()) found_chunks_ = advanced_ = true;
  import_weights(engine_->store(), weights, disk_.get(), told_by(progress, "importing the model"), restored);
  if (disk_) disk_->sync();
  ::malloc_trim(0);  // chunks on their way to the disk are in nobody's plan any more
}

void PlacedModel::write_after(std::vector<TrajectoryWriter*> trajectories) {
  trajectories_ = std::move(trajectories);
}

void PlacedModel::expect_records(std::uint32_t steps) {
  const std::lock_guard lock(mutex_);
  constexpr std::uint32_t most_reserved = 1 << 20;  // with more steps than these it grows, seldom
  if (!histories_.empty()) histories_.reserve(std::size_t{std::min(steps, most_reserved)} + 1);
}

void PlacedModel::recorded(const StepRecord& record) {
  const std::lock_guard lock(mutex_);
  if (!histories_.empty()) histories_.push_back(update_history(histories_.back(), record));
}

void PlacedModel::sync() {
  if (engine_->store().pipeline() != nullptr) engine_->store().pipeline()->drain();
  if (disk_) disk_->sync();
}

void PlacedModel::close() {
  engine_.reset();
  disk_.reset();
}

TemporaryModel::TemporaryModel(const RunConfig& config, const ModelConfig& model, const MemoryPlan& plan,
                               Compute compute, Progress* progress) {
  if (plan.disk_bytes > 0 && config.memory.scratch_folder.empty())
    throw Error(ExitCode::usage, fmt::format("memory/scratch folder: {} of the model do not fit memory/host budget and "
                                             "need a folder on a disk; name one",
                                             bytes_text(plan.disk_bytes)));
  check_scratch_place(config);
  const fs::path store = config.memory.scratch_folder / fmt::format("distzo2-{}", ::getpid());
  placed_.emplace(config, model, plan, compute, store, std::span<const StepRecord>(), shown_by(progress), nullptr,
                  nullptr, true);
}

}  // namespace distzo2
