// SPDX-License-Identifier: BSD-3-Clause
// What the lanes do at the same time, shown by meetings: a transfer or a computation goes on only once another one,
// which has to run beside it, has begun. A pipeline that did one after the other would wait for ever.
#include "core/unit_pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.hpp"
#include "core/model_shapes.hpp"
#include "tests/support/memory_storage.hpp"

namespace distzo2 {
namespace {

constexpr auto for_ever = std::chrono::seconds(60);

/// Placement of a tiny model whose decoder blocks lie on disk, and their units in order.
struct Blocks {
  explicit Blocks(int buffers, bool staging = false, std::size_t most = 100)
      : placement(resident_placement(tensor_table(model_shape("opt-tiny")), Storage::fp32)) {
    placement.buffers = buffers;
    placement.staging = staging;
    const int last = static_cast<int>(placement.unit_begin.size()) - 2;
    for (int b = 1; b < last && order.size() < most; ++b)
      order.push_back(placement.unit_begin[static_cast<std::size_t>(b)]);
    for (const int u : order) unit(u).tier = Tier::disk;
    size_buffers(placement);
  }
  Unit& unit(int u) { return placement.units[static_cast<std::size_t>(u)]; }
  std::vector<std::byte*> no_host_units() const { return std::vector<std::byte*>(placement.units.size(), nullptr); }
  Placement placement;
  std::vector<int> order;
};

/// How often something has begun; who has to meet it waits.
class Meetings {
public:
  void begun(const char* what, int unit) {
    const std::lock_guard lock(mutex_);
    ++times_[{what, unit}];
    changed_.notify_all();
  }
  bool wait(const char* what, int unit, int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, for_ever, [&] { return times_[{what, unit}] >= times; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, int>, int> times_;
};

class MeetingStorage final : public BlockStorage {
public:
  MeetingStorage(Blocks& blocks, Meetings& meetings)
      : blocks_(blocks), meetings_(meetings), bytes_(blocks.placement.chunks) {}
  void read(int begin, int end, std::byte* image) override {
    meetings_.begun("read", unit_of(begin));
    bytes_.read(begin, end, image);
  }
  void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override {
    bytes_.read_part(chunk, offset, to);
  }
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override {
    const int unit = unit_of(begin);
    meetings_.begun("write", unit);
    // With three buffers the unit after the next one is fetched while this one is stored.
    const auto at = std::ranges::find(blocks_.order, unit) - blocks_.order.begin();
    if (blocks_.placement.buffers == 3 && at + 2 < std::ssize(blocks_.order)) {
      EXPECT_TRUE(meetings_.wait("read", blocks_.order[static_cast<std::size_t>(at) + 2], static_cast<int>(version)));
    }
    bytes_.write(begin, end, image, version);
  }
  bool holds(int) const override { return true; }
  std::uint32_t version(int chunk) const override { return bytes_.version(chunk); }

private:
  int unit_of(int chunk) const {
    return *std::ranges::find_if(blocks_.order, [&](int u) { return blocks_.unit(u).chunk_begin == chunk; });
  }
  Blocks& blocks_;
  Meetings& meetings_;
  MemoryStorage bytes_;
};

double begin_of(const std::vector<LaneSpan>& spans, LaneKind lane, int unit, std::uint32_t step) {
  for (const LaneSpan& s : spans)
    if (s.lane == lane && s.unit == unit && s.step == step) return s.begin;
  ADD_FAILURE() << name_of(lane) << " of unit " << unit << " in step " << step << " is not in the trace";
  return 0;
}

double end_of(const std::vector<LaneSpan>& spans, LaneKind lane, int unit, std::uint32_t step) {
  double end = 0;
  for (const LaneSpan& s : spans)
    if (s.lane == lane && s.unit == unit && s.step == step) end = std::max(end, s.end);
  return end;
}

void expect_overlap(int buffers, bool staging) {
  Blocks blocks(buffers, staging);
  Meetings meetings;
  MeetingStorage storage(blocks, meetings);
  std::vector<LaneSpan> spans;
  constexpr int passes = 3;
  const int last = static_cast<int>(blocks.order.size()) - 1;
  const auto unit = [&](int i) { return blocks.order[static_cast<std::size_t>(i)]; };
  {
    const auto arena = make_kokkos_arena();
    UnitPipeline pipeline(blocks.placement, blocks.no_host_units(), &storage, *arena, nullptr, {});
    for (int pass = 0; pass < passes; ++pass) {
      pipeline.begin_pass(blocks.order, static_cast<std::uint32_t>(pass), blocks.order);
      for (int i = 0; i <= last; ++i) {
        ASSERT_NE(pipeline.acquire(unit(i)), nullptr);
        // While it is computed: the one before is stored, the one after fetched, be it the next pass's first.
        if (i > 0) {
          EXPECT_TRUE(meetings.wait("write", unit(i - 1), pass + 1));
        }
        EXPECT_TRUE(meetings.wait("read", unit(i < last ? i + 1 : 0), pass + (i < last ? 1 : 2)));
        pipeline.release(unit(i), true, static_cast<std::uint32_t>(pass + 1));
      }
      pipeline.end_pass();
    }
    pipeline.drain();
    pipeline.take_spans(spans);
  }
  for (std::uint32_t step = 0; step + 1 < passes; ++step) {
    for (int i = 0; i < last; ++i)
      EXPECT_LT(begin_of(spans, LaneKind::read, unit(i + 1), step), end_of(spans, LaneKind::compute, unit(i), step));
    EXPECT_LT(begin_of(spans, LaneKind::read, unit(0), step + 1), end_of(spans, LaneKind::compute, unit(last), step));
  }
}

TEST(UnitPipeline, fetches_and_stores_while_a_unit_is_computed) {
  expect_overlap(2, false);
  expect_overlap(3, false);
  expect_overlap(3, true);
}

TEST(UnitPipeline, fetches_no_unit_for_the_next_pass_before_it_is_stored) {
  for (const std::size_t units : {1U, 2U})
    for (const int buffers : {2, 3}) {
      Blocks blocks(buffers, false, units);
      MemoryStorage storage(blocks.placement.chunks);
      storage.delay = std::chrono::milliseconds(1);
      const auto arena = make_kokkos_arena();
      UnitPipeline pipeline(blocks.placement, blocks.no_host_units(), &storage, *arena, nullptr, {});
      for (std::uint32_t pass = 0; pass < 6; ++pass) {
        pipeline.begin_pass(blocks.order, pass, blocks.order);
        for (const int u : blocks.order) {
          std::byte* const data = pipeline.acquire(u);
          EXPECT_EQ(data[0], static_cast<std::byte>(pass));
          data[0] = static_cast<std::byte>(pass + 1);
          pipeline.release(u, true, pass + 1);
        }
        pipeline.end_pass();
      }
      pipeline.drain();
    }
}

TEST(UnitPipeline, drops_what_was_fetched_for_a_pass_that_does_not_come) {
  Blocks blocks(3);
  MemoryStorage storage(blocks.placement.chunks);
  const auto arena = make_kokkos_arena();
  UnitPipeline pipeline(blocks.placement, blocks.no_host_units(), &storage, *arena, nullptr, {});
  std::vector<int> backwards(blocks.order.rbegin(), blocks.order.rend());
  for (std::uint32_t pass = 0; pass < 4; ++pass) {
    const std::vector<int>& order = pass % 2 == 0 ? blocks.order : backwards;
    pipeline.begin_pass(order, pass, order);
    for (const int u : order) {
      std::byte* const data = pipeline.acquire(u);
      EXPECT_EQ(data[0], static_cast<std::byte>(pass));
      data[0] = static_cast<std::byte>(pass + 1);
      pipeline.release(u, true, pass + 1);
    }
    pipeline.end_pass();
  }
}

TEST(UnitPipeline, fetches_again_what_was_changed_behind_it) {
  Blocks blocks(3);
  MemoryStorage storage(blocks.placement.chunks);
  const auto arena = make_kokkos_arena();
  UnitPipeline pipeline(blocks.placement, blocks.no_host_units(), &storage, *arena, nullptr, {});
  for (std::uint32_t pass = 0; pass < 3; ++pass) {
    pipeline.forget_fetched();
    for (const int u : blocks.order) {
      const std::vector<std::byte> image(blocks.unit(u).bytes, static_cast<std::byte>(pass + 1));
      storage.write(blocks.unit(u).chunk_begin, blocks.unit(u).chunk_end, image.data(), pass);
    }
    pipeline.begin_pass(blocks.order, pass, blocks.order);
    for (const int u : blocks.order) {
      EXPECT_EQ(pipeline.acquire(u)[0], static_cast<std::byte>(pass + 1));
      pipeline.release(u, false, pass);
    }
    pipeline.end_pass();
  }
}

}  // namespace
}  // namespace distzo2
