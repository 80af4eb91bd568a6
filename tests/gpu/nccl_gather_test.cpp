// SPDX-License-Identifier: BSD-3-Clause
// Gathers over NCCL on as many devices as this machine has, a thread each: one at least.
#include "parallel/nccl_gather.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

/// What owner i has of the n-th gather.
unsigned char value_of(int owner, int n, std::size_t at) {
  return static_cast<unsigned char>(37 * owner + 11 * n + static_cast<int>(at % 251));
}

/// A rank's part of several gathers, large and small, queued one behind another.
void gather_on(int device, int devices, const std::string& id, std::vector<std::string>& problems) {
  const auto check = [&](cudaError_t code, const char* call) {
    if (code != cudaSuccess && problems[static_cast<std::size_t>(device)].empty())
      problems[static_cast<std::size_t>(device)] = std::string(call) + ": " + cudaGetErrorString(code);
  };
  check(cudaSetDevice(device), "cudaSetDevice");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  const auto gather = make_nccl_gather(id, device, devices, stream, "device " + std::to_string(device));
  int number = 0;
  for (const std::size_t part : {std::size_t{512}, std::size_t{4096}, std::size_t{1} << 24}) {
    std::vector<unsigned char> own(part), all(part * static_cast<std::size_t>(devices));
    void* memory = nullptr;
    check(cudaMalloc(&memory, all.size()), "cudaMalloc");
    auto* const image = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < part; ++i) own[i] = value_of(device, number, i);
    check(cudaMemcpyAsync(image + static_cast<std::size_t>(device) * part, own.data(), part, cudaMemcpyDefault, stream),
          "cudaMemcpyAsync");
    gather->gather(image, part);
    check(cudaMemcpyAsync(all.data(), image, all.size(), cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    gather->check();
    for (int owner = 0; owner < devices; ++owner)
      for (std::size_t i = 0; i < part; ++i)
        if (all[static_cast<std::size_t>(owner) * part + i] != value_of(owner, number, i))
          problems[static_cast<std::size_t>(device)] = "owner " + std::to_string(owner) + ", byte " + std::to_string(i);
    check(cudaFree(memory), "cudaFree");
    ++number;
  }
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

TEST(NcclGather, brings_the_parts_of_all_devices_to_each_of_them) {
  if (nccl_version().empty()) {  // the other way of gathering has its tests
    std::fprintf(stderr, "NCCL: %s\n", describe_nccl().c_str());
    return;
  }
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  const std::string id = make_nccl_id();
  std::vector<std::string> problems(static_cast<std::size_t>(devices));
  std::vector<std::jthread> ranks;
  for (int device = 0; device < devices; ++device)
    ranks.emplace_back([&, device] {
      try {
        gather_on(device, devices, id, problems);
      } catch (const std::exception& e) {
        problems[static_cast<std::size_t>(device)] = e.what();
      }
    });
  ranks.clear();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace distzo2
