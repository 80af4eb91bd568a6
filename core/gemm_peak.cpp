// SPDX-License-Identifier: BSD-3-Clause
#include "core/gemm_peak.hpp"

#include "core/clock.hpp"
#include "core/engine.hpp"
#include "core/pack_weights.hpp"
#include "core/panels.hpp"
#include "core/round_up.hpp"
#include "core/workspace.hpp"

#include <vector>

namespace distzo2 {

double gemm_rate_alone(const ModelConfig& config, Compute compute, int rows) {
  const HostExec exec;
  const auto threads = static_cast<std::size_t>(exec.concurrency());
  const TensorTable table = tensor_table(config);
  const int tile_count = pieces_of(rows, row_tile);
  const Compute inputs = compute == Compute::bf16 && native_bf16() ? Compute::bf16 : Compute::fp32;
  double flop = 0, seconds = 0;
  for (const Tensor& t : table.tensors) {
    if (t.block != 1 || !t.matrix) continue;
    const int n = panel_rows(t.cols);
    const int panels = static_cast<int>(t.rows) / n;
    if (panels == 0) continue;
    const int k = static_cast<int>(t.cols);
    const GemmShape shape{inputs, row_tile, n, k, k};
    Gemm& gemm = gemm_for(shape);
    const std::vector<float> x(static_cast<std::size_t>(tile_count) * row_tile * k, 0.5F);
    std::vector<std::vector<float>> w(threads, std::vector<float>(packed_floats(shape), 0.5F));
    std::vector<std::vector<float>> y(threads, std::vector<float>(static_cast<std::size_t>(row_tile) * n));
    const Kokkos::Experimental::UniqueToken<HostExec> token(exec);
    const auto pass = [&] {
      Kokkos::parallel_for(
          "distzo2::gemm_rate_alone",
          Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<int>>(exec, 0, panels)
              .set_chunk_size(1),
          [&](int) {
            const int thread = token.acquire();
            const auto i = static_cast<std::size_t>(thread);
            for (int tile = 0; tile < tile_count; ++tile) {
              const std::size_t floats = static_cast<std::size_t>(tile) * row_tile * k;
              gemm.run(thread, y[i].data(), x.data() + (inputs == Compute::bf16 ? floats / 2 : floats), w[i].data());
            }
            token.release(thread);
          });
    };
    pass();  // compiles and warms up
    const auto start = Clock::now();
    pass();
    seconds += seconds_since(start);
    flop += 2.0 * rows * static_cast<double>(panels) * n * k;
  }
  return flop / seconds;
}

}  // namespace distzo2
