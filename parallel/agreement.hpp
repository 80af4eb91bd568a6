// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "parallel/communicator.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {

/// Throws Error (rank failed), the same on all ranks, where a rank has another value than rank 0: it names the first
/// such rank and all that it has differently. The names are the same on all ranks; `host` is this rank's. By all ranks.
void check_same(Communicator& world, const std::string& host,
                const std::vector<std::pair<std::string, std::string>>& values);

/// Throws Error (rank failed), the same on all ranks, where a rank's parameters after `step` steps are not those of
/// rank 0: it names the first such rank and its first block that differs. `digest` is the sum of `block_digests()`,
/// which is asked only then; `name_of` says what a block is. By all ranks.
void check_replicas(Communicator& world, const std::string& host, std::uint32_t step, std::uint64_t digest,
                    const std::function<std::vector<std::uint64_t>()>& block_digests,
                    const std::function<std::string(std::size_t)>& name_of);

}  // namespace distzo2
