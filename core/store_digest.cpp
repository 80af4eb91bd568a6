// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest.hpp"
#include "core/exec.hpp"
#include "core/parameter_store.hpp"

#include <algorithm>

namespace distzo2 {

std::uint64_t ParameterStore::digest() const {
  // Runs of one type, cut into chunks of index_alignment indices; a chunk may span tensors.
  struct Chunk {
    std::int64_t first, end;
    int tensor;  // that holds `first`
  };
  std::vector<Chunk> chunks;
  for (int i = 0; i < std::ssize(table_.tensors);) {
    int last = i;  // the last tensor of the run
    const auto& tensors = table_.tensors;
    const auto at = [&](int j) -> const Tensor& { return tensors[static_cast<std::size_t>(j)]; };
    while (last + 1 < std::ssize(tensors) && at(last + 1).block == at(i).block && at(last + 1).matrix == at(i).matrix)
      ++last;
    const std::int64_t end = at(last).first + at(last).size();
    for (std::int64_t first = at(i).first; first < end; first += index_alignment) {
      while (at(i).first + at(i).size() <= first) ++i;
      chunks.push_back({first, std::min(first + index_alignment, end), i});
    }
    i = last + 1;
  }
  const HostExec exec;
  std::uint64_t sum = 0;
  Kokkos::parallel_reduce(
      "distzo2::digest",
      Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, static_cast<int>(chunks.size())),
      [&](int i, std::uint64_t& total) {
        const Chunk& chunk = chunks[static_cast<std::size_t>(i)];
        float values[index_alignment];
        std::int64_t at = chunk.first;
        for (int j = chunk.tensor; at < chunk.end; ++j) {
          const Tensor& t = table_.tensors[static_cast<std::size_t>(j)];
          const std::int64_t n = std::min(chunk.end, t.first + t.size()) - at;
          read(j, at - t.first, {values + (at - chunk.first), static_cast<std::size_t>(n)});
          at += n;
        }
        total += digest_chunk(static_cast<std::uint64_t>(chunk.first),
                              {values, static_cast<std::size_t>(chunk.end - chunk.first)});
      },
      sum);
  return sum;
}

}  // namespace distzo2
