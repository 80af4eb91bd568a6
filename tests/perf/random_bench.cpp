// SPDX-License-Identifier: BSD-3-Clause
// What z and the update cost on one thread. The reference in the same run is add_scaled on the same buffer, which is
// bound by the first-level cache: the counter `of add_scaled` is the ratio of elements a second. Run it as
// `bench_random --benchmark_repetitions=5 --benchmark_report_aggregates_only=true` for the spread.
#include "core/simd/kernels.hpp"
#include "core/update.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

constexpr std::size_t n = 4096;

struct Buffers {
  std::vector<float> theta = std::vector<float>(n, 0.02F);
  std::vector<float> z = std::vector<float>(n, 1.0F);
  std::vector<float> scratch = std::vector<float>(n);
  std::vector<std::uint16_t> stored = std::vector<std::uint16_t>(n);
};

double add_scaled_per_second(const SimdKernels& kernels) {
  Buffers buffers;
  double best = 0.0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    constexpr int calls = 1000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      kernels.add_scaled(buffers.theta.data(), buffers.z.data(), 1e-9F, n);
      benchmark::ClobberMemory();
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::max(best, calls * static_cast<double>(n) / taken.count());
  }
  return best;
}

template <class Body>
void measure(const SimdKernels& kernels, const std::string& name, Body body) {
  benchmark::RegisterBenchmark(
      (std::string(kernels.name) + "/" + name).c_str(), [&kernels, body](benchmark::State& state) {
        const double reference = add_scaled_per_second(kernels);
        Buffers buffers;
        std::uint64_t first = 0;
        for (auto _ : state) {
          body(kernels, buffers, first);
          benchmark::ClobberMemory();
          first += n;
        }
        const auto elements = static_cast<double>(state.iterations()) * static_cast<double>(n);
        state.counters["elements"] = benchmark::Counter(elements, benchmark::Counter::kIsRate);
        state.counters["of add_scaled"] = benchmark::Counter(elements / reference, benchmark::Counter::kIsRate);
      });
}

void measure_all(const SimdKernels& kernels) {
  measure(kernels, "gaussian", [](const SimdKernels& k, Buffers& b, std::uint64_t first) {
    k.fill_gaussian(b.z.data(), 1, 2, 1, first, n);
  });
  measure(kernels, "rademacher", [](const SimdKernels& k, Buffers& b, std::uint64_t first) {
    k.fill_rademacher(b.z.data(), 1, 2, 1, first, n);
  });
  measure(kernels, "add_scaled",
          [](const SimdKernels& k, Buffers& b, std::uint64_t) { k.add_scaled(b.theta.data(), b.z.data(), 1e-9F, n); });
  measure(kernels, "add_rademacher", [](const SimdKernels& k, Buffers& b, std::uint64_t first) {
    k.add_rademacher(b.theta.data(), 1e-9F, 1, 2, 1, first, n);
  });
  measure(kernels, "perturb_bf16", [](const SimdKernels& k, Buffers& b, std::uint64_t) {
    k.perturb_bf16(b.stored.data(), b.theta.data(), b.z.data(), 1e-3F, n);
  });
  for (const auto storage : {Storage::bf16, Storage::fp16}) {
    const std::string type = storage == Storage::bf16 ? "bf16" : "fp16";
    measure(kernels, "load_" + type, [storage](const SimdKernels& k, Buffers& b, std::uint64_t) {
      k.load_16(b.theta.data(), b.stored.data(), storage, n);
    });
    measure(kernels, "stochastic_" + type, [storage](const SimdKernels& k, Buffers& b, std::uint64_t first) {
      k.store_stochastic(b.stored.data(), b.theta.data(), storage, 1, 2, first, n);
    });
  }
}

void measure_update() {
  // The update uses the table chosen at start.
  StepRecord record;
  record.c = {1e-9F};
  measure(simd_kernels(), "apply_records", [record](const SimdKernels&, Buffers& b, std::uint64_t first) {
    apply_records(b.theta.data(), first, n, true, UpdateRule{}, std::span(&record, 1), b.scratch.data());
  });
}

}  // namespace
}  // namespace distzo2

int main(int argc, char** argv) {
  distzo2::measure_all(distzo2::simd_kernels_avx2());
  if (const auto* kernels = distzo2::simd_kernels_avx512()) {
    distzo2::measure_all(*kernels);
  }
  distzo2::measure_update();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
