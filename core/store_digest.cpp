// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest.hpp"
#include "core/kokkos_scope.hpp"
#include "core/parameter_store.hpp"
#include "core/pieces.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace distzo2 {

std::uint64_t ParameterStore::digest(const ValueVisitor& visit) const {
  std::uint64_t sum = 0;
  for (const std::uint64_t part : block_digests(visit)) sum += part;
  return sum;
}

std::uint64_t ParameterStore::shared_digest() {
  if (!slices_) return digest();
  std::uint64_t part = 0;
  for (const std::uint64_t p : block_digests(slices_->owner(), slices_->owners(), nullptr)) part += p;
  const std::optional<std::uint64_t> sum = sums_->add(part, digest_updates(records_));
  return sum ? *sum : digest();
}

std::vector<std::uint64_t> ParameterStore::block_digests(const ValueVisitor& visit) const {
  return block_digests(0, 1, visit);
}

std::vector<std::uint64_t> ParameterStore::block_digests(int part, int parts, const ValueVisitor& visit) const {
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
  // Several chunks at a time, so that what is on disk is read in long pieces; of these as many as keep all threads
  // busy.
  constexpr int at_a_time = 64;
  const int count = static_cast<int>(chunks.size());
  const auto at = [&](int i) -> const DigestChunk& { return chunks[static_cast<std::size_t>(i)]; };
  struct Piece {
    std::vector<float> values;
    std::vector<std::pair<int, std::size_t>> runs;    // tensor, elements: what `values` holds, in order
    std::vector<std::pair<int, std::uint64_t>> sums;  // block, digest of a chunk of it
  };
  const auto fill = [&](Piece& piece, int index) {
    piece.runs.clear();
    piece.sums.clear();
    std::size_t filled = 0;
    const int last = std::min(count, (index + 1) * at_a_time);
    piece.values.resize(static_cast<std::size_t>(at_a_time) * index_alignment);
    for (int begin = index * at_a_time, end; begin < last; begin = end) {
      end = begin + 1;  // chunks that follow on one another
      while (end < last && at(end).first == at(end - 1).end) ++end;
      const std::int64_t origin = at(begin).first, run_end = at(end - 1).end;
      const std::span<float> values =
          std::span(piece.values).subspan(filled, static_cast<std::size_t>(run_end - origin));
      filled += values.size();
      std::int64_t first = origin;
      for (int j = at(begin).tensor; first < run_end; ++j) {
        const Tensor& t = table_.tensors[static_cast<std::size_t>(j)];
        const std::int64_t n = std::min(run_end, t.first + t.size()) - first;
        read(j, first - t.first, values.subspan(static_cast<std::size_t>(first - origin), static_cast<std::size_t>(n)));
        piece.runs.emplace_back(j, static_cast<std::size_t>(n));
        first += n;
      }
      for (int i = begin; i < end; ++i)
        piece.sums.emplace_back(table_.tensors[static_cast<std::size_t>(at(i).tensor)].block,
                                digest_chunk(static_cast<std::uint64_t>(at(i).first),
                                             values.subspan(static_cast<std::size_t>(at(i).first - origin),
                                                            static_cast<std::size_t>(at(i).end - at(i).first))));
    }
  };
  const int pieces = static_cast<int>(pieces_of(count, at_a_time));
  const auto cut = [&](int i) { return static_cast<int>(std::int64_t{pieces} * i / parts); };
  const int end = cut(part + 1);
  std::vector<Piece> some(static_cast<std::size_t>(std::clamp(4 * host_concurrency(), 1, std::max(pieces, 1))));
  std::vector<std::uint64_t> digests(table_.blocks.size(), 0);
  for (int begin = cut(part); begin < end; begin += static_cast<int>(some.size())) {
    const auto n = static_cast<std::size_t>(std::min<std::ptrdiff_t>(std::ssize(some), end - begin));
    for_each_piece(n, [&](std::size_t i) { fill(some[i], begin + static_cast<int>(i)); });
    for (std::size_t i = 0; i < n; ++i) {
      for (const auto& [block, sum] : some[i].sums) digests[static_cast<std::size_t>(block)] += sum;
      std::span<const float> values = some[i].values;
      for (const auto& [tensor, elements] : some[i].runs) {
        if (visit) visit(tensor, values.first(elements));
        values = values.subspan(elements);
      }
    }
  }
  return digests;
}

}  // namespace distzo2
