// SPDX-License-Identifier: BSD-3-Clause
#include "core/sampler.hpp"

#include "core/error.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace distzo2 {

namespace {

/// The words of stream 2 for one epoch, one after the other.
class Words {
public:
  Words(std::uint64_t seed, std::uint32_t epoch) : seed_(seed), epoch_(epoch) {}

  std::uint32_t next() {
    if (used_ == 4) {
      words_ = random_block(seed_, block_++, epoch_, Stream::sampler, 0);
      used_ = 0;
    }
    return words_.w[used_++];
  }

  /// Uniform on 0..bound-1: the high word of word * bound, with the few products that would make some results more
  /// likely than others drawn again (Lemire, arXiv 1805.10941).
  std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = std::uint64_t{next()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t surplus = (0U - bound) % bound;  // 2^32 mod bound
      while (static_cast<std::uint32_t>(product) < surplus) {
        product = std::uint64_t{next()} * bound;
      }
    }
    return static_cast<std::uint32_t>(product >> 32U);
  }

private:
  std::uint64_t seed_;
  std::uint64_t block_ = 0;
  std::uint32_t epoch_;
  std::uint32_t used_ = 4;
  PhiloxBlock words_{};
};

}  // namespace

std::vector<std::uint32_t> keyed_permutation(std::uint64_t seed, std::uint32_t epoch, std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  Words words(seed, epoch);
  for (std::uint32_t i = n; i > 1; --i) {
    std::swap(order[i - 1], order[words.below(i)]);
  }
  return order;
}

std::vector<std::int32_t> random_tokens(std::uint64_t seed, std::uint64_t first, std::size_t n, std::int32_t vocab) {
  std::vector<std::int32_t> ids(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t word = random_word(seed, first + i, tokens_epoch, Stream::sampler, 0);
    ids[i] = static_cast<std::int32_t>(word * static_cast<std::uint32_t>(vocab) >> 32U);
  }
  return ids;
}

Sampler::Sampler(std::uint64_t seed, int batch, std::uint32_t examples)
    : seed_(seed), batch_(static_cast<std::uint64_t>(batch)), examples_(examples) {
  if (examples == 0) {
    throw Error(ExitCode::usage, "there are no examples to train on");
  }
  if (batch < 1) {
    throw Error(ExitCode::usage, "zo/batch is " + std::to_string(batch) + "; at least 1 is accepted");
  }
}

std::vector<std::uint32_t> Sampler::indices(std::uint32_t t) {
  std::vector<std::uint32_t> batch;
  batch.reserve(batch_);
  std::uint64_t position = t * batch_;
  while (batch.size() < batch_) {
    const std::uint64_t epoch = position / examples_;
    if (epoch >= tokens_epoch) {
      throw Error(ExitCode::usage, "step " + std::to_string(t) + " lies in epoch " + std::to_string(epoch) + " of " +
                                       std::to_string(examples_) + " examples; fewer than 2^32 - 2 are accepted");
    }
    if (epoch_ != epoch) {
      epoch_ = static_cast<std::uint32_t>(epoch);
      permutation_ = keyed_permutation(seed_, epoch_, examples_);
    }
    const std::uint64_t first = position % examples_;
    const std::uint64_t count = std::min(batch_ - batch.size(), examples_ - first);
    const auto from = permutation_.begin() + static_cast<std::ptrdiff_t>(first);
    batch.insert(batch.end(), from, from + static_cast<std::ptrdiff_t>(count));
    position += count;
  }
  return batch;
}

RowSplit split_rows(std::uint64_t split_seed, std::uint32_t rows, std::optional<std::uint64_t> train,
                    std::uint64_t dev) {
  const std::string have = std::to_string(rows) + (rows == 1 ? " row" : " rows");
  if (dev >= rows) {
    throw Error(ExitCode::usage, "data/dev examples is " + std::to_string(dev) + ", but the file has " + have +
                                     " and some must be left to train on");
  }
  const std::uint64_t wanted = train.value_or(rows - dev);
  if (wanted == 0 || wanted > rows - dev) {
    throw Error(ExitCode::usage, "data/train examples is " + std::to_string(wanted) + ", but the file has " + have +
                                     (dev == 0 ? "" : ", of which " + std::to_string(dev) + " are for dev") +
                                     "; 1 to " + std::to_string(rows - dev) + " are accepted");
  }
  const auto order = keyed_permutation(split_seed, split_epoch, rows);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(wanted);
  RowSplit split{{order.begin(), end}, {end, end + static_cast<std::ptrdiff_t>(dev)}};
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.dev.begin(), split.dev.end());
  return split;
}

std::vector<std::uint32_t> choose_rows(std::uint64_t split_seed, std::uint32_t rows,
                                       std::optional<std::uint64_t> count) {
  const std::uint64_t wanted = count.value_or(rows);
  if (wanted == 0 || wanted > rows) {
    throw Error(ExitCode::usage, std::to_string(wanted) + " rows asked for, but the file has " + std::to_string(rows) +
                                     "; 1 to " + std::to_string(rows) + " are accepted");
  }
  auto order = keyed_permutation(split_seed, split_epoch, rows);
  order.resize(wanted);
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace distzo2
