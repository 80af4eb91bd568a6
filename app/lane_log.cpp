// SPDX-License-Identifier: BSD-3-Clause
#include "app/lane_log.hpp"

#include "core/lane.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace distzo2 {
namespace {

constexpr std::size_t most_uses = 1024;

}  // namespace

StepUses::StepUses() {
  uses_.reserve(most_uses);
}

void StepUses::add(const Utilisation& step) {
  open_ = together(open_, step);
  if (++steps_ % steps_each_ != 0) return;
  uses_.push_back(std::exchange(open_, {}));
  if (uses_.size() < most_uses) return;
  for (std::size_t i = 0; i < uses_.size() / 2; ++i) uses_[i] = together(uses_[2 * i], uses_[2 * i + 1]);
  uses_.resize(uses_.size() / 2);
  steps_each_ *= 2;
}

std::optional<Utilisation> StepUses::last_half() const {
  if (steps_ == 0) return std::nullopt;
  Utilisation sum = open_;
  for (std::size_t i = steps_ / 2 / steps_each_; i < uses_.size(); ++i) sum = together(sum, uses_[i]);
  return sum;
}

LaneLog::LaneLog(const RunConfig& config, Engine& engine) : pipeline_(engine.store().pipeline()) {
  if (pipeline_ == nullptr) return;
  if (!config.output.trace_file.empty()) trace_.emplace(config.output.trace_file);
  pipeline_->take_spans(spans_);
  since_ = trace_clock();
}

/// What the lanes have finished since the last call.
Utilisation LaneLog::take() {
  spans_.clear();
  pipeline_->take_spans(spans_);
  if (trace_) trace_->append(spans_);
  Utilisation use = utilisation(spans_, -HUGE_VAL, HUGE_VAL, 0.0);
  const double now = trace_clock();
  use.wall_s = now - std::exchange(since_, now);
  return use;
}

void LaneLog::interrupt_step() {
  if (pipeline_ != nullptr) step_ = together(step_, take());
}

void LaneLog::leave_out() {
  if (pipeline_ != nullptr) take();
}

void LaneLog::after_step() {
  interrupt_step();
  if (pipeline_ != nullptr) steps_.add(std::exchange(step_, {}));
}

void LaneLog::close() {
  if (trace_) trace_->close();
  trace_.reset();
}

double disk_rate(const Utilisation& use) {
  const LaneUse &read = use.lanes[static_cast<int>(LaneKind::read)],
                &write = use.lanes[static_cast<int>(LaneKind::write)];
  const double busy_s = std::max(read.busy_s, write.busy_s);  // they run side by side
  return busy_s > 0 ? static_cast<double>(read.bytes + write.bytes) / busy_s : 0;
}

nlohmann::ordered_json lanes_object(const std::optional<Utilisation>& use) {
  if (!use) return nullptr;
  nlohmann::ordered_json lanes{{"wall_s", use->wall_s}, {"overlap", use->overlap}};
  for (int i = 0; i < lane_kinds; ++i)
    if (const LaneUse& lane = use->lanes[i]; lane.busy_s > 0) {
      nlohmann::ordered_json& object = lanes[name_of(static_cast<LaneKind>(i))];
      object = {{"busy_s", lane.busy_s}, {"bytes", lane.bytes}};
      if (lane.bytes > 0) object["bytes_per_s"] = static_cast<double>(lane.bytes) / lane.busy_s;
    }
  return lanes;
}

}  // namespace distzo2
