// SPDX-License-Identifier: BSD-3-Clause
#include "core/z_alone.hpp"

#include "core/clock.hpp"
#include "core/engine.hpp"
#include "core/models/family.hpp"
#include "core/panels.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <utility>

namespace distzo2 {
namespace {

/// Seconds, mean over threads, in which z of every direction of p is made `times` times for the tensor.
double fill_seconds(const HostExec& exec, const Tensor& tensor, const Perturbation& p, int times,
                    PanelScratch& scratch) {
  const std::vector<DirectionGroup>& groups = scratch.groups(p);
  const std::int64_t panel = panel_rows(tensor.cols) * tensor.cols;
  const auto panels = static_cast<int>(pieces_of(tensor.size(), panel));
  const Kokkos::Experimental::UniqueToken<HostExec> token(exec);
  Kokkos::parallel_for(
      "distzo2::z_alone",
      Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<int>>(exec, 0, panels)
          .set_chunk_size(1),
      [&](int i) {
        const int thread = token.acquire();
        ThreadPanels& t = scratch.thread(thread);
        const auto start = Clock::now();
        const std::int64_t end = std::min((i + 1) * panel, tensor.size());
        for (std::int64_t at = i * panel; at < end; at += chunk_elements)
          for (const DirectionGroup& group : groups)
            for (int time = 0; group.direction != 0 && time < times; ++time)
              fill_z(t.z.data(), p, group.direction, static_cast<std::uint64_t>(tensor.first + at),
                     std::min(chunk_elements, end - at));
        t.z_s += seconds_since(start);
        token.release(thread);
      });
  double seconds = 0;
  for (ThreadPanels& t : scratch.threads()) seconds += std::exchange(t.z_s, 0.0);
  return seconds / static_cast<double>(scratch.threads().size());
}

}  // namespace

ZAlone z_alone(const ModelConfig& config, const Perturbation& p) {
  const HostExec exec;
  const TensorTable table = tensor_table(config);
  const int head = family_of(config.family).head_matrix(config, table);
  PanelScratch scratch(exec);
  ZAlone result;
  for (int i = 0; i < std::ssize(table.tensors); ++i) {
    const Tensor& tensor = table.tensors[static_cast<std::size_t>(i)];
    if (!tensor.matrix) continue;
    if (tensor.block == 0 && i != head)
      result.lookups_s += fill_seconds(exec, tensor, p, 1, scratch);
    else
      result.passes_s += fill_seconds(exec, tensor, p, 2, scratch);
  }
  return result;
}

}  // namespace distzo2
