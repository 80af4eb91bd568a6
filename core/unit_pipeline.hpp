// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/block_storage.hpp"
#include "core/compute_memory.hpp"
#include "core/host_arena.hpp"
#include "core/lane.hpp"
#include "core/placement.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace distzo2 {

/// Buffers each way through which disk units pass where the compute memory is another one: one fills while the other
/// empties.
constexpr int bounce_buffers = 2;

/// Moves a model's streamed units through a few reused buffers: read | upload | compute | download | write (design
/// section 4). The calling thread is the compute lane; it waits for a unit that is not there yet and for nothing else.
/// Where compute and store share a memory, a disk unit is read straight into its buffer. On a device the lanes upload
/// and download only queue copies there, in the same order; the calling thread waits until a unit's upload is queued,
/// and the device's compute lane until it is done.
class UnitPipeline {
public:
  struct Options {
    double link_bytes_per_s = 0;  // slows uploads and downloads down to this, for tests; 0: as fast as it goes
  };
  /// `host_of_unit[u]`: the bytes of a unit of the tier host, else null. `storage` serves units of the tier disk.
  /// `device`: where it computes; null: on the host. Memory of the host is from `host`.
  UnitPipeline(const Placement& placement, std::vector<std::byte*> host_of_unit, BlockStorage* storage, HostArena& host,
               ComputeMemory* device, const Options& options);
  ~UnitPipeline();

  /// The streamed units of the pass that begins, in the order in which they will be acquired, and those that the pass
  /// after it will probably begin with: they are fetched ahead as soon as buffers are free, while the last units of
  /// this pass are still computed. What was fetched ahead and does not come first now is dropped.
  void begin_pass(std::span<const int> order, std::uint32_t step, std::span<const int> next);
  void end_pass();
  /// Between passes, before stored units are changed by anyone but this: what was fetched ahead is fetched again.
  void forget_fetched() { drop_expected(); }

  /// The next unit of the order: its bytes, once they are there. Throws what a lane threw.
  std::byte* acquire(int unit);
  /// The unit is no longer read. With `write_back` its bytes become the stored ones, of this version.
  void release(int unit, bool write_back, std::uint32_t version);

  /// Waits until what was written back of this unit, or of all, has arrived.
  void wait_written(int unit);
  void drain();

  std::size_t buffer_bytes() const { return buffer_bytes_; }  // allocated
  void take_spans(std::vector<LaneSpan>& out);

private:
  struct Buffer {
    std::byte* data = nullptr;
    bool vectors = false;  // for one-dimensional tensors alone
    int unit = -1;         // -1: nobody's
    bool acquired = false;
    std::uint64_t given_back = 0;  // the how-manieth release it was
    std::uint64_t uses = 0;        // `loaded` reaches it when the unit has arrived, `freed` when it may be overwritten
    Event loaded, freed;           // on a device: when that is queued, and `last` marks it there
    std::unique_ptr<DeviceEvent> last;
  };
  struct Bounce {  // host side of a disk unit whose buffer is on a device
    std::byte* data = nullptr;
    std::uint64_t uses = 0;
    Event filled, emptied;
    std::unique_ptr<DeviceEvent> last;  // the device's copy from it or into it
  };
  struct UnitState {
    std::uint64_t writes = 0;
    Event written;
    std::unique_ptr<DeviceEvent> last;  // of a host unit: the device's copy into it
  };
  static void read_task(void* self, const LaneTask& task);
  static void upload_task(void* self, const LaneTask& task);
  static void download_task(void* self, const LaneTask& task);
  static void write_task(void* self, const LaneTask& task);
  void copy_slowly(std::byte* to, const std::byte* from, std::size_t bytes) const;
  void upload_to_device(const LaneTask& task);
  void download_from_device(const LaneTask& task);
  void copy_on(LaneKind lane, std::byte* to, const std::byte* from, const LaneTask& task);
  std::byte* host_side(const LaneTask& task, std::deque<Bounce>& bounce);
  Buffer& buffer_at(int i) { return buffers_[static_cast<std::size_t>(i)]; }
  void computes(int unit);
  void computed();
  void issue();
  void drop_expected();
  bool still_needed(int unit) const;
  int free_buffer(bool vectors) const;
  int buffer_of(int unit, bool acquired) const;
  void rethrow();
  void start_load(int unit, int buffer, std::uint32_t step);
  const Unit& unit_at(int u) const { return placement_.units[static_cast<std::size_t>(u)]; }
  bool bounces(const Unit& u) const { return u.tier == Tier::disk && placement_.staging; }

  const Placement& placement_;
  std::vector<std::byte*> host_of_unit_;
  BlockStorage* storage_;
  ComputeMemory* device_;
  Options options_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::size_t buffer_bytes_ = 0;
  std::deque<Buffer> buffers_;   // those for whole units, then those for one-dimensional tensors; never moved
  std::deque<Bounce> in_, out_;  // bounce buffers of reads and writes
  std::size_t next_in_ = 0, next_out_ = 0;
  std::uint64_t releases_ = 0;
  std::deque<UnitState> states_;        // a unit
  std::vector<int> expected_;           // units to be acquired, in order: those of this pass, then of the next one
  std::size_t pass_end_ = 0;            // of them, in expected_
  std::size_t taken_ = 0, issued_ = 0;  // expected_[taken_, issued_) have a buffer
  std::uint32_t step_ = 0;
  std::vector<LaneSpan> compute_spans_;
  LaneSpan computing_;
  std::optional<Lane> read_, upload_, download_, write_;
};

}  // namespace distzo2
