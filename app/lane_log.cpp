// SPDX-License-Identifier: BSD-3-Clause
#include "app/lane_log.hpp"

#include "core/lane.hpp"

#include <nlohmann/json.hpp>

namespace distzo2 {
namespace {

/// Spans kept for the summary: about 50 MB. A run with more has its last ones.
constexpr std::size_t most_spans_kept = std::size_t{1} << 20;

}  // namespace

LaneLog::LaneLog(const RunConfig& config, Engine& engine) : pipeline_(engine.store().pipeline()) {
  if (pipeline_ == nullptr) return;
  if (!config.output.trace_file.empty()) trace_.emplace(config.output.trace_file);
  pipeline_->take_spans(spans_);
  spans_.clear();
  step_ends_.push_back(trace_clock());
}

void LaneLog::after_step() {
  if (pipeline_ == nullptr) return;
  const std::size_t before = spans_.size();
  pipeline_->take_spans(spans_);
  if (trace_) trace_->append(std::span(spans_).subspan(before));
  step_ends_.push_back(trace_clock());
  if (spans_.size() > most_spans_kept)
    spans_.erase(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(spans_.size() / 2));
}

void LaneLog::close() {
  if (trace_) trace_->close();
  trace_.reset();
}

std::optional<Utilisation> LaneLog::last_half() const {
  if (step_ends_.size() < 2) return std::nullopt;
  const double begin = step_ends_[(step_ends_.size() - 1) / 2];
  return utilisation(spans_, begin, step_ends_.back(), 0.0);
}

nlohmann::ordered_json lanes_object(const std::optional<Utilisation>& use) {
  if (!use) return nullptr;
  nlohmann::ordered_json lanes{{"wall_s", use->wall_s}, {"overlap", use->overlap}};
  for (int i = 0; i < lane_kinds; ++i)
    if (use->lanes[i].busy_s > 0)
      lanes[name_of(static_cast<LaneKind>(i))] = {{"busy_s", use->lanes[i].busy_s}, {"bytes", use->lanes[i].bytes}};
  return lanes;
}

}  // namespace distzo2
