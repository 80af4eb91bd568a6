// SPDX-License-Identifier: BSD-3-Clause
#include "core/unit_pipeline.hpp"

#include "core/error.hpp"
#include "core/host_arena.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace distzo2 {
namespace {

constexpr std::size_t entries_a_transfer = 8;  // tasks, waits and records, at most

}  // namespace

UnitPipeline::UnitPipeline(const Placement& placement, std::vector<std::byte*> host_of_unit, BlockStorage* storage,
                           HostArena& host, ComputeMemory* device, const Options& options)
    : placement_(placement),
      host_of_unit_(std::move(host_of_unit)),
      storage_(storage),
      device_(device),
      options_(options) {
  const auto event = [&] { return device != nullptr ? device->make_event() : nullptr; };
  bool disk = false;
  for (const Unit& u : placement.units) {
    states_.emplace_back();
    disk = disk || u.tier == Tier::disk;
    if (u.tier == Tier::host) states_.back().last = event();
  }
  const auto keep = [&](std::shared_ptr<std::byte> memory, std::size_t bytes) {
    memory_.push_back(std::move(memory));
    buffer_bytes_ += bytes;
    return memory_.back().get();
  };
  const auto allocate = [&](const char* label, std::size_t bytes) { return keep(host.allocate(label, bytes), bytes); };
  const auto add = [&](const char* label, std::size_t bytes, bool vectors) {
    for (int i = 0; bytes > 0 && i < placement.buffers; ++i) {
      Buffer& b = buffers_.emplace_back();
      b.vectors = vectors;
      b.data = device != nullptr ? keep(device->allocate(label, bytes), bytes) : allocate(label, bytes);
      b.last = event();
    }
  };
  add("distzo2::unit_buffer", placement.buffer_bytes, false);
  add("distzo2::vector_buffer", placement.vector_buffer_bytes, true);
  if (disk && placement.staging)
    for (int i = 0; i < bounce_buffers; ++i) {
      const std::size_t bytes = std::max(placement.buffer_bytes, placement.vector_buffer_bytes);
      in_.emplace_back().data = allocate("distzo2::read_bounce", bytes);
      out_.emplace_back().data = allocate("distzo2::write_bounce", bytes);
      in_.back().last = event();
      out_.back().last = event();
    }
  expected_.reserve(2 * placement.units.size());
  compute_spans_.reserve(most_spans);
  // A buffer has one transfer each way at a time: queues of this size never make the compute lane wait.
  const std::size_t capacity = entries_a_transfer * (buffers_.size() + 1);
  if (disk) {
    read_.emplace(LaneKind::read, capacity);
    write_.emplace(LaneKind::write, capacity);
  }
  if (placement.staging) {
    upload_.emplace(LaneKind::upload, capacity);
    download_.emplace(LaneKind::download, capacity);
  }
}

UnitPipeline::~UnitPipeline() {
  if (device_ == nullptr) return;
  for (auto* lane : {&read_, &upload_, &download_, &write_}) lane->reset();
  try {
    device_->drain();                // no copy may be under way when the buffers go
  } catch (const std::exception&) {  // a device that has failed copies no more
  }
}

// ---- what lanes do ----

void UnitPipeline::copy_slowly(std::byte* to, const std::byte* from, std::size_t bytes) const {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::memcpy(to, from, bytes);
  if (options_.link_bytes_per_s > 0)
    std::this_thread::sleep_until(start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                              static_cast<double>(bytes) / options_.link_bytes_per_s)));
}

void UnitPipeline::read_task(void* self, const LaneTask& task) {
  auto& p = *static_cast<UnitPipeline*>(self);
  const Unit& u = p.unit_at(task.unit);
  if (p.device_ != nullptr) p.device_->finish(*p.in_[static_cast<std::size_t>(task.bounce)].last);
  p.storage_->read(u.chunk_begin, u.chunk_end, p.host_side(task, p.in_));
}

void UnitPipeline::upload_task(void* self, const LaneTask& task) {
  auto& p = *static_cast<UnitPipeline*>(self);
  if (p.device_ != nullptr) return p.upload_to_device(task);
  p.copy_slowly(p.buffer_at(task.buffer).data, p.host_side(task, p.in_), task.bytes);
}

void UnitPipeline::download_task(void* self, const LaneTask& task) {
  auto& p = *static_cast<UnitPipeline*>(self);
  if (p.device_ != nullptr) return p.download_from_device(task);
  p.copy_slowly(p.host_side(task, p.out_), p.buffer_at(task.buffer).data, task.bytes);
}

void UnitPipeline::write_task(void* self, const LaneTask& task) {
  auto& p = *static_cast<UnitPipeline*>(self);
  const Unit& u = p.unit_at(task.unit);
  if (p.device_ != nullptr) p.device_->finish(*p.out_[static_cast<std::size_t>(task.bounce)].last);
  p.storage_->write(u.chunk_begin, u.chunk_end, p.host_side(task, p.out_), task.version);
}

// On a device, what a buffer, a bounce buffer or a host unit was last used for is marked by its one event `last`: users
// take turns, and the next one's lane waits for it.

void UnitPipeline::copy_on(LaneKind lane, std::byte* to, const std::byte* from, const LaneTask& task) {
  device_->begin_span({lane, task.unit, task.step, 0, 0, task.bytes});
  device_->copy(lane, to, from, task.bytes);
  device_->end_span(lane);
}

void UnitPipeline::upload_to_device(const LaneTask& task) {
  Buffer& b = buffer_at(task.buffer);
  const UnitState& state = states_[static_cast<std::size_t>(task.unit)];
  if (state.last) device_->wait(LaneKind::upload, *state.last);
  device_->wait(LaneKind::upload, *b.last);
  copy_on(LaneKind::upload, b.data, host_side(task, in_), task);
  device_->record(LaneKind::upload, *b.last);
  if (task.bounce >= 0) device_->record(LaneKind::upload, *in_[static_cast<std::size_t>(task.bounce)].last);
}

void UnitPipeline::download_from_device(const LaneTask& task) {
  Buffer& b = buffer_at(task.buffer);
  device_->wait(LaneKind::download, *b.last);
  copy_on(LaneKind::download, host_side(task, out_), b.data, task);
  device_->record(LaneKind::download, *b.last);
  device_->record(LaneKind::download, task.bounce >= 0 ? *out_[static_cast<std::size_t>(task.bounce)].last
                                                       : *states_[static_cast<std::size_t>(task.unit)].last);
}

std::byte* UnitPipeline::host_side(const LaneTask& task, std::deque<Bounce>& bounce) {
  if (task.bounce >= 0) return bounce[static_cast<std::size_t>(task.bounce)].data;
  if (unit_at(task.unit).tier == Tier::disk) return buffer_at(task.buffer).data;  // there is one memory
  return host_of_unit_[static_cast<std::size_t>(task.unit)];
}

// ---- the schedule ----

int UnitPipeline::free_buffer(bool vectors) const {
  int best = -1;
  for (int i = 0; i < std::ssize(buffers_); ++i) {
    const Buffer& b = buffers_[static_cast<std::size_t>(i)];
    if (b.unit >= 0 || b.vectors != vectors) continue;
    // The one given back first: its write-back is done first.
    if (best < 0 || b.given_back < buffers_[static_cast<std::size_t>(best)].given_back) best = i;
  }
  return best;
}

int UnitPipeline::buffer_of(int unit, bool acquired) const {
  const auto found =
      std::ranges::find_if(buffers_, [&](const Buffer& b) { return b.unit == unit && b.acquired == acquired; });
  if (found == buffers_.end()) throw Error(ExitCode::internal, "unit " + std::to_string(unit) + " has no buffer");
  return static_cast<int>(found - buffers_.begin());
}

void UnitPipeline::start_load(int unit, int buffer, std::uint32_t step) {
  const Unit& u = unit_at(unit);
  Buffer& b = buffers_[static_cast<std::size_t>(buffer)];
  UnitState& state = states_[static_cast<std::size_t>(unit)];
  b.unit = unit;
  const std::uint64_t use = ++b.uses;
  if (bounces(u)) {
    const auto i = static_cast<int>(next_in_++ % in_.size());
    Bounce& in = in_[static_cast<std::size_t>(i)];
    const std::uint64_t fill = ++in.uses;
    read_->wait(state.written, state.writes);
    read_->wait(in.emptied, fill - 1);
    read_->run({read_task, this, unit, buffer, i, 0, u.bytes}, step);
    read_->record(in.filled, fill);
    upload_->wait(in.filled, fill);
    upload_->wait(b.freed, use - 1);
    upload_->run({upload_task, this, unit, buffer, i, 0, u.bytes}, step);
    upload_->record(in.emptied, fill);
    upload_->record(b.loaded, use);
    return;
  }
  Lane& lane = u.tier == Tier::disk ? *read_ : *upload_;
  lane.wait(state.written, state.writes);
  lane.wait(b.freed, use - 1);
  lane.run({u.tier == Tier::disk ? read_task : upload_task, this, unit, buffer, -1, 0, u.bytes}, step);
  lane.record(b.loaded, use);
}

/// In the pass under way: a later load of it must wait until it has been given back.
bool UnitPipeline::still_needed(int unit) const {
  const auto left = std::span(expected_).subspan(taken_, pass_end_ - taken_);
  return std::ranges::find(left, unit) != left.end() ||
         std::ranges::any_of(buffers_, [&](const Buffer& b) { return b.unit == unit && b.acquired; });
}

void UnitPipeline::issue() {
  while (issued_ < expected_.size()) {
    const int unit = expected_[issued_];
    const bool ahead = issued_ >= pass_end_;
    if (ahead && still_needed(unit)) return;
    const int buffer = free_buffer(unit_at(unit).vectors);
    if (buffer < 0) return;
    start_load(unit, buffer, step_ + (ahead ? 1 : 0));
    ++issued_;
  }
}

void UnitPipeline::drop_expected() {
  for (std::size_t i = taken_; i < issued_; ++i)
    for (Buffer& b : buffers_)
      if (b.unit == expected_[i] && !b.acquired) {
        b.loaded.wait(b.uses);
        b.unit = -1;
        b.given_back = ++releases_;
        b.freed.set(b.uses);
      }
  expected_.clear();
  pass_end_ = taken_ = issued_ = 0;
}

void UnitPipeline::begin_pass(std::span<const int> order, std::uint32_t step, std::span<const int> next) {
  rethrow();
  step_ = step;
  const std::size_t ahead = issued_ - taken_;
  const auto fetched = expected_.begin() + static_cast<std::ptrdiff_t>(taken_);
  // Their bytes are the stored ones: whoever changes those behind the pipeline has called forget_fetched.
  const bool fits =
      ahead <= order.size() && std::equal(fetched, fetched + static_cast<std::ptrdiff_t>(ahead), order.begin());
  if (!fits) drop_expected();
  expected_.assign(order.begin(), order.end());
  expected_.insert(expected_.end(), next.begin(), next.end());
  pass_end_ = order.size();
  issued_ = fits ? ahead : 0;
  taken_ = 0;
  issue();
  computes(-1);
}

void UnitPipeline::end_pass() {
  computed();
  if (taken_ < pass_end_) return drop_expected();
  expected_.erase(expected_.begin(), expected_.begin() + static_cast<std::ptrdiff_t>(pass_end_));
  issued_ -= pass_end_;
  pass_end_ = taken_ = 0;
  issue();
}

void UnitPipeline::computes(int unit) {
  computing_ = {LaneKind::compute, unit, step_, trace_clock(), 0, 0};
  if (device_ != nullptr) device_->begin_span(computing_);
}

void UnitPipeline::computed() {
  if (device_ != nullptr) return device_->end_span(LaneKind::compute);
  computing_.end = trace_clock();
  if (compute_spans_.size() < most_spans) compute_spans_.push_back(computing_);
}

std::byte* UnitPipeline::acquire(int unit) {
  if (taken_ >= pass_end_ || expected_[taken_] != unit)
    throw Error(ExitCode::internal, "unit " + std::to_string(unit) + " is not the next of the pass");
  computed();
  issue();
  if (taken_ == issued_)
    throw Error(ExitCode::internal, "unit " + std::to_string(unit) + ": more units are in use than there are buffers");
  Buffer& b = buffers_[static_cast<std::size_t>(buffer_of(unit, false))];
  b.loaded.wait(b.uses);
  rethrow();
  if (device_ != nullptr) device_->wait(LaneKind::compute, *b.last);
  b.acquired = true;
  ++taken_;
  computes(unit);
  return b.data;
}

void UnitPipeline::release(int unit, bool write_back, std::uint32_t version) {
  const Unit& u = unit_at(unit);
  const int buffer = buffer_of(unit, true);
  Buffer& b = buffer_at(buffer);
  UnitState& state = states_[static_cast<std::size_t>(unit)];
  b.unit = -1;
  b.acquired = false;
  b.given_back = ++releases_;
  if (device_ != nullptr) device_->record(LaneKind::compute, *b.last);
  if (!write_back) {
    b.freed.set(b.uses);
  } else if (bounces(u)) {
    const auto i = static_cast<int>(next_out_++ % out_.size());
    Bounce& out = out_[static_cast<std::size_t>(i)];
    const std::uint64_t fill = ++out.uses;
    download_->wait(out.emptied, fill - 1);
    download_->run({download_task, this, unit, buffer, i, version, u.bytes}, step_);
    download_->record(out.filled, fill);
    download_->record(b.freed, b.uses);
    write_->wait(out.filled, fill);
    write_->run({write_task, this, unit, buffer, i, version, u.bytes}, step_);
    write_->record(state.written, ++state.writes);
    write_->record(out.emptied, fill);
  } else {
    Lane& lane = u.tier == Tier::disk ? *write_ : *download_;
    lane.run({u.tier == Tier::disk ? write_task : download_task, this, unit, buffer, -1, version, u.bytes}, step_);
    lane.record(state.written, ++state.writes);
    lane.record(b.freed, b.uses);
  }
  issue();
}

void UnitPipeline::wait_written(int unit) {
  const UnitState& state = states_[static_cast<std::size_t>(unit)];
  state.written.wait(state.writes);
  rethrow();
  if (state.last) device_->finish(*state.last);
}

void UnitPipeline::rethrow() {
  for (auto* lane : {&read_, &upload_, &download_, &write_})
    if (*lane) (*lane)->rethrow();
}

void UnitPipeline::drain() {
  for (auto* lane : {&read_, &upload_, &download_, &write_})
    if (*lane) (*lane)->drain();
  if (device_ != nullptr) device_->drain();
}

void UnitPipeline::take_spans(std::vector<LaneSpan>& out) {
  for (auto* lane : {&read_, &write_})
    if (*lane) (*lane)->take_spans(out);
  if (device_ != nullptr) return device_->take_spans(out);  // on the host, upload and download only queue there
  for (auto* lane : {&upload_, &download_})
    if (*lane) (*lane)->take_spans(out);
  out.insert(out.end(), compute_spans_.begin(), compute_spans_.end());
  compute_spans_.clear();
}

}  // namespace distzo2
