// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/progress.hpp"
#include "app/run_config.hpp"
#include "core/compute_memory.hpp"
#include "core/engine.hpp"
#include "core/memory_plan.hpp"
#include "io/disk_store.hpp"
#include "io/trajectory_file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

/// The deck's model on the tiers of its plan: resident, streamed from host memory, or from a store on disk.
class PlacedModel {
public:
  /// `store`: the folder for what goes to disk. `records`: those that a resumed run's trajectory holds; of a store that
  /// stands there, chunks that check and that these records led to are kept, the others are made from the base model.
  /// `progress` may be null; on a store that is found it is called from threads of its own, one at a time. `node`:
  /// where all ranks of the node have what is in memory; of them the first has the store, in the same folder.
  /// `restore`: gives the store what checkpoints hold, of what the disk does not hold in as new a version.
  /// `temporary`: the store is of no run, and goes with the process.
  using Restore = std::function<std::vector<bool>(ParameterStore& store, const BlockStorage* disk)>;
  PlacedModel(const RunConfig& config, const ModelConfig& model, const MemoryPlan& plan, Compute compute,
              const std::filesystem::path& store, std::span<const StepRecord> records, const ByteProgress& progress,
              NodeMemory* node = nullptr, const Restore& restore = nullptr, bool temporary = false);
  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  Engine& engine() { return *engine_; }
  /// Whether chunks were found, in a store or in checkpoints; and whether with updates: then theta_0 is not at hand.
  bool found_chunks() const { return found_chunks_; }
  bool is_advanced() const { return advanced_; }
  const std::filesystem::path& disk_folder() const { return disk_->folder(); }  // of a model that has one
  /// On a rank that writes the trajectory, or a copy of it: every record is on their devices before a chunk that
  /// includes it is written (design section 6). At least one.
  void write_after(std::vector<TrajectoryWriter*> trajectories);
  /// On the other ranks, which write no trajectory and wait for none: so many records are told of in all, and this is
  /// the next. A store of theirs may be ahead of the trajectory after a crash. Each chunk has with its version the
  /// digest of the records that led to it, so that a resume keeps none that the trajectory does not lead to.
  void expect_records(std::uint32_t steps);
  void recorded(const StepRecord& record);
  std::uint64_t bytes_read() const { return disk_ ? disk_->bytes_read() : 0; }
  std::uint64_t bytes_written() const { return disk_ ? disk_->bytes_written() : 0; }
  /// Bytes taken on the device; 0 where the host computes.
  std::uint64_t device_bytes() const { return device_ ? device_->used_bytes() : 0; }
  /// Waits until what was written is on the disk.
  void sync();
  /// Lets go of the engine and the store, which may not be used any more.
  void close();

private:
  // What the store asks for as it writes: it outlives the engine, whose lanes write on until that is gone.
  std::mutex mutex_;                      // of histories_
  std::vector<std::uint64_t> histories_;  // of the records found and told, where a file is written and no trajectory
  std::vector<TrajectoryWriter*> trajectories_;
  std::uint32_t synced_ = 0;  // records known to be durable
  std::unique_ptr<DiskStore> disk_;
  std::unique_ptr<ComputeMemory> device_;
  std::unique_ptr<Engine> engine_;
  bool found_chunks_ = false, advanced_ = false;
};

/// The model of a command that has no run, placed as a run's would be. What goes to disk is in a file without a name
/// in `memory/scratch folder`: it goes with this object, or with the process, however that ends. Throws Error (usage)
/// where one is needed and none is named.
class TemporaryModel {
public:
  TemporaryModel(const RunConfig& config, const ModelConfig& model, const MemoryPlan& plan, Compute compute,
                 Progress* progress = nullptr);
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  Engine& engine() { return placed_->engine(); }
  std::uint64_t device_bytes() const { return placed_->device_bytes(); }

private:
  std::optional<PlacedModel> placed_;
};

}  // namespace distzo2
