// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/host_arena.hpp"

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

namespace distzo2 {

// Device code is written once, as templates over a Space: where it runs and how memory there is had. A Space gives
//   Exec, Memory                                Kokkos' execution and memory space
//   team_threads                                threads of a team; each owns a part of what the team computes
//   allocate(label, bytes)                      memory that computes, 4096-byte aligned, zeroed
//   allocate_host(label, bytes)                 host memory, copied from and to quickly
//   copy(exec, to, from, bytes)                 queued behind exec's work, in any direction; the host does not wait
//   wait(exec)                                  the host waits for what is queued
// core/cuda/ has the one of CUDA. Here is the host's, with which the tests run all device code.

/// What a kernel may carry along: Kokkos hands larger ones over through constant memory, which makes the host wait.
constexpr std::size_t most_kernel_bytes = 256;

struct HostSpace {
  using Exec = HostExec;
  using Memory = Kokkos::HostSpace;
  static constexpr int team_threads = 1;

  static std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) {
    return make_kokkos_arena()->allocate(label, bytes);
  }
  static std::shared_ptr<std::byte> allocate_host(const std::string& label, std::size_t bytes) {
    return allocate(label, bytes);
  }
  static void copy(const Exec& exec, void* to, const void* from, std::size_t bytes) {
    wait(exec);
    std::memcpy(to, from, bytes);
  }
  static void wait(const Exec& exec) { exec.fence(); }
};

}  // namespace distzo2
