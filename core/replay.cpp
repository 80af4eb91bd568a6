// SPDX-License-Identifier: BSD-3-Clause
#include "core/replay.hpp"

#include "core/digest.hpp"
#include "core/digest_chunks.hpp"
#include "core/error.hpp"
#include "core/pieces.hpp"
#include "core/round_up.hpp"
#include "core/update.hpp"

#include <algorithm>
#include <mutex>

namespace distzo2 {
namespace {

/// Chunks that a thread takes at a time: what is read at once is long, and all threads end at about the same time.
constexpr std::size_t chunks_at_a_time = 16;

}  // namespace

std::vector<std::uint64_t> replayed_digests(
    const ParameterStore& theta0, std::span<const StepRecord> records, std::span<const std::uint32_t> steps,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  if (!std::ranges::is_sorted(steps) || (!steps.empty() && steps.back() > records.size()))
    throw Error(ExitCode::internal, "digests are asked for of steps out of order, or beyond the records");
  const TensorTable& table = theta0.table();
  const std::vector<DigestChunk> chunks = digest_chunks(table);
  const auto total = static_cast<std::uint64_t>(table.parameters);
  std::vector<std::uint64_t> digests(steps.size(), 0);
  std::uint64_t done = 0;
  std::mutex mutex;  // of both
  const auto replay_piece = [&](std::size_t piece) {
    const std::size_t begin = piece * chunks_at_a_time;
    const auto some = std::span(chunks).subspan(begin, std::min(chunks_at_a_time, chunks.size() - begin));
    std::vector<float> values(some.size() * index_alignment);
    std::size_t filled = 0;
    for_each_part(table, some, [&](int tensor, std::int64_t offset, std::int64_t elements) {
      const auto n = static_cast<std::size_t>(elements);
      theta0.read(tensor, offset, std::span(values).subspan(filled, n));
      filled += n;
    });
    std::vector<std::uint64_t> sums(steps.size(), 0);
    float scratch[chunk_elements];
    float* theta = values.data();
    for (const DigestChunk& chunk : some) {
      const auto first = static_cast<std::uint64_t>(chunk.first);
      const auto n = static_cast<std::size_t>(chunk.end - chunk.first);
      const bool matrix = table.tensors[static_cast<std::size_t>(chunk.tensor)].matrix;
      std::uint32_t applied = 0;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto next = records.subspan(applied, steps[i] - applied);
        apply_records(theta, first, n, matrix, theta0.rule(), next, scratch);
        applied = steps[i];
        sums[i] += digest_chunk(first, {theta, n});
      }
      theta += n;
    }
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < sums.size(); ++i) digests[i] += sums[i];
    done += filled;
    if (progress) progress(done, total);
  };
  for_each_piece(pieces_of(chunks.size(), chunks_at_a_time), replay_piece);
  return digests;
}

}  // namespace distzo2
