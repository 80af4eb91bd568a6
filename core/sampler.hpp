// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace distzo2 {

/// A uniform permutation of 0..n-1, a pure function of (seed, epoch, n): Fisher-Yates over the words of Philox stream
/// 2, counter (block low, block high, epoch, 2 << 24), each draw unbiased (multiply and reject).
std::vector<std::uint32_t> keyed_permutation(std::uint64_t seed, std::uint32_t epoch, std::uint32_t n);

/// The epoch kept for `split_rows`: no epoch of training has this number.
constexpr std::uint32_t split_epoch = 0xFFFFFFFFU;

/// The epoch kept for `random_tokens`.
constexpr std::uint32_t tokens_epoch = 0xFFFFFFFEU;

/// Tokens [first, first + n) of an endless text of ids drawn from 0..vocab-1, each from a word of its own of stream 2,
/// counter (block low, block high, tokens_epoch, 2 << 24): floor(word * vocab / 2^32).
std::vector<std::int32_t> random_tokens(std::uint64_t seed, std::uint64_t first, std::size_t n, std::int32_t vocab);

/// The batches of a run: step t takes positions [t * batch, (t + 1) * batch) of the concatenated epochs, each a
/// keyed permutation of all examples; a batch may cross epochs. A pure function of (seed, t): the permutation in use is
/// only cached. Throws Error (usage) for an empty set, a batch below 1, or a run of 2^32 - 2 epochs or more.
class Sampler {
public:
  Sampler(std::uint64_t seed, int batch, std::uint32_t examples);
  std::vector<std::uint32_t> indices(std::uint32_t t);  // (batch), in the order in which losses are summed

private:
  std::uint64_t seed_;
  std::uint64_t batch_;
  std::uint32_t examples_;
  std::uint32_t epoch_ = split_epoch;  // of the permutation kept
  std::vector<std::uint32_t> permutation_;
};

/// Disjoint subsets of a training file's rows, each in the file's order.
struct RowSplit {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> dev;
};

/// The first `train` rows of the permutation keyed by the split seed, then the next `dev`; without `train` all that
/// `dev` leaves. Throws Error (usage) where rows < train + dev, or nothing is left to train on.
RowSplit split_rows(std::uint64_t split_seed, std::uint32_t rows, std::optional<std::uint64_t> train,
                    std::uint64_t dev);

/// `count` rows, or all, of a file that serves one purpose alone, in the file's order: the first of the same
/// permutation. Throws Error (usage) where there are fewer.
std::vector<std::uint32_t> choose_rows(std::uint64_t split_seed, std::uint32_t rows,
                                       std::optional<std::uint64_t> count);

}  // namespace distzo2
