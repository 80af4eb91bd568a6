// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/agreement.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

/// Each rank's complaint about itself, if any; the first one is thrown on all.
void throw_first(Communicator& world, const std::string& host, const std::string& complaint) {
  const std::vector<std::string> all = world.gather(
      complaint.empty() ? std::string() : "rank " + std::to_string(world.rank()) + " on " + host + complaint);
  const auto first = std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
  if (first != all.end()) throw Error(ExitCode::rank_failed, *first);
}

}  // namespace

void check_same(Communicator& world, const std::string& host,
                const std::vector<std::pair<std::string, std::string>>& values) {
  if (world.size() == 1) return;
  std::string mine;
  for (const auto& [name, value] : values) mine += value + '\0';
  const std::string theirs = world.broadcast(mine);
  std::string different;
  std::size_t at = 0;
  for (const auto& [name, value] : values) {
    const std::size_t end = std::min(theirs.find('\0', at), theirs.size());
    const std::string of_first = theirs.substr(at, end - at);
    at = std::min(end + 1, theirs.size());
    if (value != of_first)
      different += (different.empty() ? " has another deck, model, data or program than rank 0: " : "; ") + name +
                   ": " + value + ", rank 0 has " + of_first;
  }
  throw_first(world, host, different);
}

void check_replicas(Communicator& world, const std::string& host, std::uint32_t step, std::uint64_t digest,
                    const std::function<std::vector<std::uint64_t>()>& block_digests,
                    const std::function<std::string(std::size_t)>& name_of) {
  if (world.size() == 1) return;
  const std::vector<std::uint64_t> digests = world.gather(digest);
  if (std::ranges::all_of(digests, [&](std::uint64_t d) { return d == digests.front(); })) return;
  const std::vector<std::uint64_t> mine = block_digests();
  std::string bytes;
  for (const std::uint64_t d : mine) bytes += std::to_string(d) + '\n';
  const std::string theirs = world.broadcast(bytes);
  std::string complaint;
  if (bytes != theirs) {
    std::size_t block = 0, at = 0;
    for (; block < mine.size(); ++block) {
      const std::string line = std::to_string(mine[block]) + '\n';
      if (theirs.compare(at, line.size(), line) != 0) break;
      at += line.size();
    }
    complaint =
        " has other parameters than rank 0 after step " + std::to_string(step) + ", first in block " +
        std::to_string(block) + (block < mine.size() ? " (" + name_of(block) + ")" : "") +
        ": its memory, or the program, is at fault; the trajectory up to here was made with both, go on from an "
        "earlier step, on other machines";
  }
  throw_first(world, host, complaint);
  throw Error(ExitCode::rank_failed, "digests of the parameters differ between ranks after step " +
                                         std::to_string(step) + ", but no block's does when asked again");
}

}  // namespace distzo2
