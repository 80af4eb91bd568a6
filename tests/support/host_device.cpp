// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/host_device.hpp"

#include "core/device/device_backend.inl"
#include "tests/support/host_waits.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

namespace distzo2 {

namespace {

std::atomic<int> waits{0}, allocations{0};

/// The host's, each of whose waits and allocations is counted.
struct CountedSpace : HostSpace {
  static std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) {
    ++allocations;
    return HostSpace::allocate(label, bytes);
  }
  static std::shared_ptr<std::byte> allocate_host(const std::string& label, std::size_t bytes) {
    return allocate(label, bytes);
  }
  static void wait(const Exec& exec) {
    ++waits;
    HostSpace::wait(exec);
  }
};

/// sums[i] += a b[i], i < n: nearly all that the host does as a device, so the sanitizers leave it alone.
[[gnu::no_sanitize("address", "undefined")]] void add_multiple(float* sums, const float* b, float a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sums[i] = __builtin_fmaf(a, b[i], sums[i]);
}

class LoopGemm final : public DeviceGemm {
public:
  explicit LoopGemm(Compute compute) : compute_(compute) {}
  void run(const DeviceProduct& p) override {
    const auto value = [&](const std::byte* data, std::int64_t i) {
      const auto* words = reinterpret_cast<const std::uint16_t*>(data);
      if (compute_ == Compute::fp32) return reinterpret_cast<const float*>(data)[i];
      return compute_ == Compute::bf16 ? Bfloat16::to_float(words[i]) : Float16::to_float(words[i]);
    };
    // Rows of b side by side, so that the chains of neighbouring elements go on together.
    const auto n = static_cast<std::size_t>(p.n);
    std::vector<float> b(n * static_cast<std::size_t>(p.k)), sums(n);
    for (std::int64_t i = 0; i < std::ssize(b); ++i)
      b[static_cast<std::size_t>(i % p.k) * n + static_cast<std::size_t>(i / p.k)] = value(p.b, i);
    for (int row = 0; row < p.m; ++row) {
      std::ranges::fill(sums, 0.0F);
      for (int i = 0; i < p.k; ++i)
        add_multiple(sums.data(), &b[static_cast<std::size_t>(i) * n], value(p.a, row * p.lda + i), n);
      float* const c = p.c + row * p.ldc;
      for (std::size_t column = 0; column < n; ++column) c[column] = p.add ? c[column] + sums[column] : sums[column];
    }
  }
  std::string name() const override { return "loops"; }

private:
  Compute compute_;
};

}  // namespace

HostCalls host_calls() {
  return {waits.load(), allocations.load()};
}

std::unique_ptr<DeviceGemm> make_loop_gemm(Compute compute) {
  return std::make_unique<LoopGemm>(compute);
}

std::unique_ptr<Backend> make_host_device_backend(const BackendSetup& setup) {
  return std::make_unique<DeviceBackend<CountedSpace>>(HostExec(), make_loop_gemm(setup.compute), setup);
}

}  // namespace distzo2
