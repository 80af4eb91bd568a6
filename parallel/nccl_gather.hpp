// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/block_gather.hpp"

#include <memory>
#include <string>

namespace distzo2 {

class Communicator;  // parallel/communicator.hpp

/// The version of NCCL that this program uses ("2.28.9"): built in, and its library found as it runs; else empty.
std::string nccl_version();

/// The same for people: what there is, or what is missing.
std::string describe_nccl();

/// What the ranks of a new communicator are given to find each other: made by one of them. Throws Error (internal)
/// where there is no NCCL.
std::string make_nccl_id();

/// Gathers over NCCL (NVLink where there is one) between `ranks` processes or threads, each on a device of its own, its
/// current one, by a communicator of theirs. By all of them, with one id; `lane`: the CUDA stream that gathers are
/// queued on. A thread asks now and then for errors that have come since: after one, all work of the communicator is
/// given up, and `check` and `gather` throw it, with `name` (this rank's, with its host) in front.
std::unique_ptr<BlockGather> make_nccl_gather(const std::string& id, int rank, int ranks, void* lane,
                                              const std::string& name);

/// The same for the ranks of `node`, which are told the id here.
std::unique_ptr<BlockGather> make_nccl_gather(Communicator& node, void* lane, const std::string& name);

}  // namespace distzo2
