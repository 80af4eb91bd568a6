// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest.hpp"
#include "core/parameter_store.hpp"
#include "core/pieces.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

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
  // Several chunks at a time, so that what is on disk is read in long pieces.
  constexpr int at_a_time = 64;
  const int count = static_cast<int>(chunks.size());
  const auto at = [&](int i) -> const DigestChunk& { return chunks[static_cast<std::size_t>(i)]; };
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(pieces_of(count, at_a_time)));
  for_each_piece(sums.size(), [&](std::size_t piece) {
    std::vector<float> values;
    const auto values_of = [&](std::int64_t first, std::int64_t n, std::int64_t origin) {
      return std::span(values).subspan(static_cast<std::size_t>(first - origin), static_cast<std::size_t>(n));
    };
    const int last = std::min(count, (static_cast<int>(piece) + 1) * at_a_time);
    for (int begin = static_cast<int>(piece) * at_a_time, end; begin < last; begin = end) {
      end = begin + 1;  // chunks that follow on one another
      while (end < last && at(end).first == at(end - 1).end) ++end;
      const std::int64_t origin = at(begin).first, run_end = at(end - 1).end;
      values.resize(static_cast<std::size_t>(run_end - origin));
      std::int64_t first = origin;
      for (int j = at(begin).tensor; first < run_end; ++j) {
        const Tensor& t = table_.tensors[static_cast<std::size_t>(j)];
        const std::int64_t n = std::min(run_end, t.first + t.size()) - first;
        read(j, first - t.first, values_of(first, n, origin));
        first += n;
      }
      for (int i = begin; i < end; ++i)
        sums[piece] += digest_chunk(static_cast<std::uint64_t>(at(i).first),
                                    values_of(at(i).first, at(i).end - at(i).first, origin));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

}  // namespace distzo2
