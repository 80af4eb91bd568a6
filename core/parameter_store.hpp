// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"
#include "core/compute_memory.hpp"
#include "core/host_arena.hpp"
#include "core/node_reads.hpp"
#include "core/node_slices.hpp"
#include "core/node_sums.hpp"
#include "core/placement.hpp"
#include "core/rounding_report.hpp"
#include "core/tensor_table.hpp"
#include "core/trajectory_record.hpp"
#include "core/unit_pipeline.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace distzo2 {

/// A matrix, rows of one, or a one-dimensional tensor as a stage sees it: stored values and the records not yet in
/// them.
struct Weight {
  std::byte* data = nullptr;  // (rows, cols) row-major in `storage`; null for a matrix of a group that is not open
  Storage storage = Storage::fp32;
  bool matrix = false;
  std::int64_t rows = 0, cols = 0;
  std::uint64_t first = 0;  // global index of element (0, 0)
  const UpdateRule* rule = nullptr;
  std::span<const StepRecord> pending;  // records to apply, oldest first
  std::size_t absorb = 0;               // how many of `pending` a pass may write back (up to the last rounding point)
  int tensor = -1;
  bool gathered = false;  // looked-up rows, one after another: row ids[i] of the tensor is row i of `data`
};

/// Applies updates where the parameters are on a device.
struct PendingUpdates {
  virtual ~PendingUpdates() = default;
  /// Applies w.pending[0, w.absorb) to the elements, queued on the compute lane.
  virtual void apply_pending(const Weight& w) = 0;
};

class PanelScratch;  // core/panels.hpp

/// Given consecutive elements of one tensor after another, in canonical order.
using ValueVisitor = std::function<void(int tensor, std::span<const float> values)>;

/// All parameters of a model: matrices in S, one-dimensional tensors in fp32, each unit on its tier. A chunk has a
/// version, the first record not yet in it; every reader sees the pending records applied.
class ParameterStore {
public:
  /// All resident: one flat buffer a block.
  ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena);
  /// Tiers as placed (of `make_units` with this table and the rule's storage). `disk` serves the units placed on disk
  /// and outlives the store; chunks that it holds already keep their versions. `device`: the memory of resident units
  /// and of buffers, where it is not the host's; `Weight::data` then is an address there. `node`: the memory of
  /// units that are not on disk, one copy of them for all ranks that share it; these make the same calls that update,
  /// and with units on disk the same passes, in the same order: the first reads and writes for all of them.
  ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena, Placement placement, BlockStorage* disk,
                 const UnitPipeline::Options& options = {}, ComputeMemory* device = nullptr,
                 NodeMemory* node = nullptr);
  ~ParameterStore();
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;

  const TensorTable& table() const { return table_; }
  const ChunkTable& chunks() const { return placement_.chunks; }
  const Placement& placement() const { return placement_; }
  const UpdateRule& rule() const { return rule_; }
  /// On a device: what applies updates there, before the first pass.
  void apply_with(PendingUpdates& updates) { updates_ = &updates; }
  std::size_t bytes() const;                         // of the stored parameters, on all tiers
  std::size_t memory_bytes() const;                  // allocated: parameters in memory and the buffers of streamed ones
  std::uint32_t next_step() const { return next_; }  // t of the next record

  /// Values of a chunk's elements, given whole or asked for piece by piece (fill(begin, out): elements from `begin`
  /// on), or of a tensor's elements [offset, offset + n), rounded to nearest. Only before the first record; the last
  /// only for tensors in memory.
  void import_chunk(int chunk, std::span<const float> values);
  void import_chunk(int chunk, const std::function<void(std::int64_t begin, std::span<float> out)>& fill);
  void import_values(int tensor, std::int64_t offset, std::span<const float> values);
  /// After the last import. With shared units each rank imports its own slices of what it is given: returns when all
  /// have.
  void imported();

  /// The record becomes pending for every tensor. Its t must be next_step().
  void append(StepRecord record);

  // A pass goes over the streamed units in a fixed order; what is in memory is always open. `open...` gives what has
  // been fetched, `close...` gives the buffer back and, where it is the unit's turn (`write back every`), stores it.

  /// Order: decoder blocks, then the row ranges of the head matrix, then those of an untied embedding whose turn it is.
  void begin_pass(int head_matrix);
  /// Brings the streamed units of an untied embedding up to date whose turn it is: nothing else passes over them. To be
  /// called first, once the rows of this pass have been looked up, so that those of the next pass have long been
  /// written.
  void update_streamed_table();
  void end_pass();
  void open_block(int block);
  Weight open_matrix(int tensor);  // in group mode: one matrix of an open block
  void close_matrix(int tensor);
  void close_block(int block);
  void open(int unit);
  void close(int unit, bool in_any_case = false);
  /// Units that hold the rows of a matrix, one or several; and those whose turn it is to be brought up to date.
  std::span<const int> units_of(int tensor) const { return units_of_tensor_[static_cast<std::size_t>(tensor)]; }
  bool streams(int unit) const { return placement_.streams(placement_.units[static_cast<std::size_t>(unit)]); }
  bool streams_tensor(int tensor) const;  // any of its rows
  bool in_turn(int unit) const { return in_turn(unit, next_); }
  bool in_turn(int unit, std::uint32_t next) const;

  /// A view for one pass: of a tensor that is all there, or of the rows that one unit holds. A pass that writes applies
  /// pending[0, absorb) to every element; then it calls `absorbed`.
  Weight weight(int tensor) const;
  Weight rows_in(int tensor, int unit) const;
  std::int64_t first_row(int tensor, int unit) const;
  void absorbed(int tensor);
  void absorbed_rows(int tensor, int unit);

  /// fp32 values of these rows, records applied, in a buffer that the next call overwrites, in the memory that
  /// computes. Streamed tensors alone.
  Weight gather_rows(int tensor, std::span<const std::int32_t> ids);
  /// Room for so many of them, so that no pass has to allocate it.
  void reserve_rows(int tensor, std::size_t count);

  /// Before a pass absorbs a tensor's records: counts what rounding will make of them.
  void sample_rounding_of(const Weight& w);
  const RoundingReport& rounding() {
    count_samples();
    return rounding_;
  }

  /// Applies and stores what can be absorbed, everywhere (a pass of its own over streamed units); in a matrix that is
  /// there, or in all one-dimensional tensors of an open block; in a view, whose caller then calls `absorbed`. Threads
  /// over pieces.
  void apply_pending();
  void apply_pending(const Weight& w);
  void apply_pending_matrix(int tensor);
  void apply_pending_vectors(int block);
  /// The same for units that the ranks of a node share, and nothing without them: by all of these ranks, before one of
  /// them alone passes over the model or has records pending that it may not leave to a pass.
  void update_shared();

  /// out[0..n) = elements [offset, offset + n) of the tensor with the pending records applied. Between passes.
  void read(int tensor, std::int64_t offset, std::span<float> out) const;

  /// Sum mod 2^64 of XXH3-64 over chunks of 4,096 indices as readers see them (design section 3).
  /// `visit`, where given, sees every value on the way, from the calling thread.
  std::uint64_t digest(const ValueVisitor& visit = nullptr) const;
  /// The part of each of the table's blocks, which add up to it.
  std::vector<std::uint64_t> block_digests(const ValueVisitor& visit = nullptr) const;
  /// The same as digest(), by all ranks that share units: each reads a part of the model. Where records that are
  /// pending differ between them, each digests all of it as it sees it.
  std::uint64_t shared_digest();

  /// Brings the chunks of each disk unit, and all in memory, to one version, the latest among them: they differ after a
  /// crash, or where a checkpoint was restored. By all ranks that share units.
  void level_versions();

  // Chunks as they are stored, without the records that are pending: what a checkpoint holds.

  /// A chunk's bytes to memory of that size, checked where they come from a disk; returns its version. Between passes;
  /// any thread may call.
  std::uint32_t read_stored(int chunk, std::byte* to) const;
  /// Before the first record: the chunk's bytes become these, of this version. Null: another rank that has the chunk in
  /// common with this one has been given them; `imported` ends that. Any thread may call, for a chunk of its own.
  void restore_chunk(int chunk, const std::byte* image, std::uint32_t version);

  UnitPipeline* pipeline() { return pipeline_.get(); }  // null where nothing streams
  /// Whether what streams is read once for the ranks of a node: then each of them takes part in every pass.
  bool reads_with_others() const { return reads_ != nullptr; }

private:
  std::vector<std::uint64_t> block_digests(int part, int parts, const ValueVisitor& visit) const;
  static std::size_t size(int i) { return static_cast<std::size_t>(i); }
  int first_chunk(int tensor) const { return chunk_of_tensor_[static_cast<std::size_t>(tensor)]; }
  int end_chunk(int tensor) const;
  Weight rows_of(int tensor, int chunk_begin, int chunk_end) const;
  void read_in_chunk(int tensor, int chunk, std::int64_t offset, std::span<float> out, std::size_t element) const;
  Weight view(int tensor, int chunk, std::int64_t row_begin, std::int64_t row_end, std::byte* data,
              std::uint32_t version) const;
  bool on_device(int unit) const {
    return device_ != nullptr && placement_.units[static_cast<std::size_t>(unit)].tier == Tier::resident;
  }
  bool shares(int unit) const {
    return slices_ != nullptr && placement_.units[static_cast<std::size_t>(unit)].tier != Tier::disk;
  }
  /// Of the ranks that share a disk, the first writes what all of them have computed.
  bool writes_disk() const { return slices_ == nullptr || slices_->owner() == 0; }
  /// Copies of shared units go through buffers: each is brought up to date before the first is fetched.
  bool stages_shared_units() const { return slices_ != nullptr && placement_.staging; }
  /// Of what the pass after this one begins with, what may be fetched before that pass's update.
  std::span<const int> units_fetched_ahead(std::span<const int> order) const {
    return stages_shared_units() ? std::span<const int>() : order;
  }
  Weight stored_rows(int tensor, int chunk_begin, int chunk_end) const;  // of a shared unit, where they lie
  std::uint32_t updated(std::uint32_t version) const;                    // what a pass makes of it
  /// Of global indices first .. first + n in the unit, the part [begin, end) from `first` on that this rank writes.
  std::pair<std::int64_t, std::int64_t> own_part(int unit, std::int64_t first, std::int64_t n) const;
  void order_of_pass(std::uint32_t next, std::vector<int>& order) const;
  void begin_slices();
  void update_slices(int block);
  void await_slices(int block);
  void apply_pending(const Weight& w, std::int64_t begin, std::int64_t end);
  void store_values(int unit, std::byte* to, std::span<const float> values, Storage storage);
  void count_samples();
  void absorbed_chunks(int begin, int end, std::uint32_t version);
  void replay_chunk(int chunk, std::uint32_t version);
  void level_memory();
  std::byte* memory_of_chunk(int chunk) const;  // null on disk

  TensorTable table_;
  UpdateRule rule_;
  Placement placement_;
  BlockStorage* disk_ = nullptr;
  ComputeMemory* device_ = nullptr;
  HostArena& host_;  // where memory of the host comes from: pinned, with a device
  PendingUpdates* updates_ = nullptr;
  std::unique_ptr<NodeSlices> slices_;  // null where this rank has its parameters alone
  std::unique_ptr<NodeSums> sums_;      // of digests; with slices_
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::size_t memory_bytes_ = 0;
  std::vector<std::byte*> memory_of_unit_;  // null on disk
  std::vector<std::byte*> open_;            // a streamed unit's buffer while it is open
  std::vector<int> chunk_of_tensor_, unit_of_chunk_;
  std::vector<std::vector<int>> units_of_tensor_;
  std::vector<std::uint32_t> version_, seen_;  // a chunk: as stored, as in its open buffer
  // Streamed units of this pass and, to be fetched ahead, of the one after it; those that computing passes over.
  std::vector<int> order_, next_order_, forward_order_;
  std::uint32_t last_pass_ = ~0U;  // `next_` of the pass before this one; at first of none
  int head_matrix_ = 0;
  std::vector<StepRecord> records_;  // records_[i].t == first_record_ + i; those still pending somewhere
  std::uint32_t first_record_ = 0;
  std::uint32_t next_ = 0;
  RoundingReport rounding_;
  // On a device: the first elements of matrices as they were before this step's update, for the rounding report.
  struct Samples {
    std::shared_ptr<std::byte> memory;
    std::unique_ptr<DeviceEvent> copied;
    std::vector<Weight> weights;  // `data`: their copies
  };
  Samples samples_;
  struct GatheredRows {
    std::shared_ptr<std::byte> host, device;  // the first: pinned, with a device alone
    std::size_t bytes = 0;
  };
  GatheredRows gathered_;
  std::vector<int> by_id_;                 // of gather_rows: tokens, those of one id side by side
  std::unique_ptr<PanelScratch> scratch_;  // of apply_pending
  std::unique_ptr<NodeReads> reads_;       // what the pipeline reads from where ranks share the disk
  std::unique_ptr<UnitPipeline> pipeline_;
};

}  // namespace distzo2
