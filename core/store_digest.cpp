// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest.hpp"
#include "core/digest_chunks.hpp"
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
  const std::vector<DigestChunk> chunks = digest_chunks(table_);
  // Several chunks at a time, so that what is on disk is read in long pieces; of these as many as keep all threads
  // busy.
  constexpr int at_a_time = 64;
  const int count = static_cast<int>(chunks.size());
  struct Piece {
    std::vector<float> values;
    std::vector<std::pair<int, std::size_t>> runs;    // tensor, elements: what `values` holds, in order
    std::vector<std::pair<int, std::uint64_t>> sums;  // block, digest of a chunk of it
  };
  const auto fill = [&](Piece& piece, int index) {
    piece.runs.clear();
    piece.sums.clear();
    piece.values.resize(static_cast<std::size_t>(at_a_time) * index_alignment);
    const int begin = index * at_a_time;
    const auto some = std::span(chunks).subspan(static_cast<std::size_t>(begin),
                                                static_cast<std::size_t>(std::min(at_a_time, count - begin)));
    std::span<float> rest = piece.values;
    for_each_part(table_, some, [&](int tensor, std::int64_t offset, std::int64_t elements) {
      const auto n = static_cast<std::size_t>(elements);
      read(tensor, offset, rest.first(n));
      piece.runs.emplace_back(tensor, n);
      rest = rest.subspan(n);
    });
    std::span<const float> values = piece.values;
    for (const DigestChunk& chunk : some) {
      const auto n = static_cast<std::size_t>(chunk.end - chunk.first);
      piece.sums.emplace_back(table_.tensors[static_cast<std::size_t>(chunk.tensor)].block,
                              digest_chunk(static_cast<std::uint64_t>(chunk.first), values.first(n)));
      values = values.subspan(n);
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
