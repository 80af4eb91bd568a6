// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest.hpp"
#include "core/exec.hpp"
#include "core/parameter_store.hpp"
#include "core/round_up.hpp"

#include <algorithm>

namespace distzo2 {

std::uint64_t ParameterStore::digest() const {
  // Runs of one type, cut into chunks of index_alignment indices; a chunk may span tensors.
  struct DigestChunk {
    std::int64_t first, end;
    int tensor;  // that holds `first`
  };
  std::vector<DigestChunk> chunks;
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
  // Many chunks at a time, so that what is on disk is read in long pieces.
  constexpr int at_a_time = 256;
  const int count = static_cast<int>(chunks.size());
  const HostExec exec;
  std::uint64_t sum = 0;
  Kokkos::parallel_reduce(
      "distzo2::digest", Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, pieces_of(count, at_a_time)),
      [&](int piece, std::uint64_t& total) {
        std::vector<float> values;
        const int last = std::min(count, (piece + 1) * at_a_time);
        for (int begin = piece * at_a_time, end; begin < last; begin = end) {
          const DigestChunk& head = chunks[static_cast<std::size_t>(begin)];
          end = begin + 1;  // chunks that follow on one another
          while (end < last &&
                 chunks[static_cast<std::size_t>(end)].first == chunks[static_cast<std::size_t>(end - 1)].end)
            ++end;
          values.resize(static_cast<std::size_t>(chunks[static_cast<std::size_t>(end - 1)].end - head.first));
          std::int64_t at = head.first;
          for (int j = head.tensor; at < chunks[static_cast<std::size_t>(end - 1)].end; ++j) {
            const Tensor& t = table_.tensors[static_cast<std::size_t>(j)];
            const std::int64_t n = std::min(chunks[static_cast<std::size_t>(end - 1)].end, t.first + t.size()) - at;
            read(j, at - t.first,
                 std::span(values).subspan(static_cast<std::size_t>(at - head.first), static_cast<std::size_t>(n)));
            at += n;
          }
          for (int i = begin; i < end; ++i) {
            const DigestChunk& c = chunks[static_cast<std::size_t>(i)];
            total += digest_chunk(static_cast<std::uint64_t>(c.first),
                                  std::span<const float>(values).subspan(static_cast<std::size_t>(c.first - head.first),
                                                                         static_cast<std::size_t>(c.end - c.first)));
          }
        }
      },
      sum);
  return sum;
}

}  // namespace distzo2
