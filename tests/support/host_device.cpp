// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/host_device.hpp"

#include "core/device/device_backend.inl"

#include <cmath>

namespace distzo2 {

template class DeviceBackend<HostSpace>;

namespace {

class LoopGemm final : public DeviceGemm {
public:
  explicit LoopGemm(Compute compute) : compute_(compute) {}
  void run(const DeviceProduct& p) override {
    const auto value = [&](const std::byte* data, std::int64_t i) {
      const auto* words = reinterpret_cast<const std::uint16_t*>(data);
      if (compute_ == Compute::fp32) return reinterpret_cast<const float*>(data)[i];
      return compute_ == Compute::bf16 ? Bfloat16::to_float(words[i]) : Float16::to_float(words[i]);
    };
    for (int row = 0; row < p.m; ++row)
      for (int column = 0; column < p.n; ++column) {
        float sum = 0.0F;
        for (int i = 0; i < p.k; ++i)
          sum = std::fma(value(p.a, row * p.lda + i), value(p.b, std::int64_t{column} * p.k + i), sum);
        float& c = p.c[row * p.ldc + column];
        c = p.add ? c + sum : sum;
      }
  }
  std::string name() const override { return "loops"; }

private:
  Compute compute_;
};

}  // namespace

std::unique_ptr<DeviceGemm> make_loop_gemm(Compute compute) {
  return std::make_unique<LoopGemm>(compute);
}

std::unique_ptr<Backend> make_host_device_backend(const BackendSetup& setup) {
  return std::make_unique<DeviceBackend<HostSpace>>(HostExec(), make_loop_gemm(setup.compute), setup);
}

}  // namespace distzo2
