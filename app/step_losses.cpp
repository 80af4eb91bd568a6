// SPDX-License-Identifier: BSD-3-Clause
#include "app/step_losses.hpp"

#include "core/objective.hpp"
#include "core/packing.hpp"
#include "parallel/communicator.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace distzo2 {
namespace {

/// Rows packed together in an evaluation: enough for full GEMM tiles, few enough that activations stay small.
constexpr int evaluation_rows = 1024;

/// [begin, end) of examples that are evaluated together: at least one.
int evaluation_end(std::span<const Example> examples, int begin) {
  int tokens = 0;
  int end = begin;
  while (end < std::ssize(examples)) {
    tokens += packed_size(examples[static_cast<std::size_t>(end)], Candidates::all).tokens;
    if (end > begin && tokens > evaluation_rows) break;
    ++end;
  }
  return end;
}

}  // namespace

ComputedLosses compute_losses(Engine& engine, std::span<const Example> examples, std::span<const std::uint32_t> batch,
                              const Share& share, const Perturbation& step, Objective objective,
                              std::span<const std::uint32_t> order) {
  // 1. This rank's sequences, packed in the order asked for.
  std::vector<std::uint32_t> mine(static_cast<std::size_t>(share.sequences.size()));
  if (order.empty())
    std::iota(mine.begin(), mine.end(), static_cast<std::uint32_t>(share.sequences.begin));
  else
    std::copy(order.begin(), order.end(), mine.begin());
  std::vector<std::uint32_t> rows;
  for (const std::uint32_t b : mine) rows.push_back(batch[b]);
  const PackedExamples packed = pack_examples(examples, rows, candidates_of(objective));

  // 2. This rank's evaluations of them, forward together.
  Perturbation p = step;
  p.evaluations.assign(step.evaluations.begin() + share.evaluations.begin,
                       step.evaluations.begin() + share.evaluations.end);
  const std::size_t terms = packed.batch.terms.size();
  std::vector<double> log_prob(p.evaluations.size() * terms);
  engine.forward(packed.batch, p, log_prob);

  // 3. Their losses, at the sequences' places in the batch.
  ComputedLosses result;
  result.tokens = static_cast<std::uint64_t>(packed.batch.tokens());
  result.share.losses.assign(step.evaluations.size() * batch.size(), 0.0);
  result.share.counts.assign(batch.size(), 0.0);
  for (std::size_t e = 0; e < p.evaluations.size(); ++e)
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const std::size_t evaluation = e + static_cast<std::size_t>(share.evaluations.begin);
      result.share.losses[evaluation * batch.size() + mine[i]] = sequence_loss(
          objective, std::span(log_prob).subspan(e * terms, terms), packed.examples[i], result.share.counts[mine[i]]);
    }
  return result;
}

std::optional<EvaluationResult> evaluate(Engine& engine, std::span<const Example> examples, Objective objective,
                                         Communicator& ranks, const std::function<bool(std::size_t)>& go_on,
                                         const std::function<void(std::span<const double>)>& each) {
  EvaluationSum sum;
  std::vector<double> log_prob;
  engine.store().update_shared();  // in the last round not every rank has a pass
  for (int begin = 0; begin < std::ssize(examples);) {
    if (!go_on(static_cast<std::size_t>(begin))) return std::nullopt;
    // 1. A pass for each rank, one after another in the order of examples.
    const int first = begin;
    std::vector<int> counts;
    int mine = 0;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == ranks.rank()) mine = begin;
      const int end = begin < std::ssize(examples) ? evaluation_end(examples, begin) : begin;
      counts.push_back(end - begin);
      begin = end;
    }
    // 2. This rank's. One without work does another's over again where ranks read the parameters together.
    std::vector<std::uint32_t> rows(static_cast<std::size_t>(counts[static_cast<std::size_t>(ranks.rank())]));
    const bool helps = rows.empty() && engine.store().reads_with_others();
    if (helps) rows.resize(static_cast<std::size_t>(counts.front()));
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(helps ? first : mine));
    std::vector<ExampleResult> results;
    if (!rows.empty()) {
      const PackedExamples packed = pack_examples(examples, rows, Candidates::all);
      log_prob.resize(packed.batch.terms.size());
      engine.forward(packed.batch, clean_perturbation(), log_prob);
      for (const ExampleTerms& terms : std::span(packed.examples).first(helps ? 0 : packed.examples.size())) {
        results.push_back(example_result(objective, log_prob, terms));
        if (each) each(candidate_scores(log_prob, terms));
      }
    }
    // 3. All of them, added in the order of examples: the same bits on any number of ranks.
    for (const ExampleResult& r : ranks.gather(std::span<const ExampleResult>(results), counts)) add_result(sum, r);
  }
  return EvaluationResult{sum.accuracy(), sum.mean_loss(), sum.examples, sum.confusion};
}

std::optional<EvaluationResult> evaluate(Engine& engine, std::span<const Example> examples, Objective objective,
                                         const std::function<bool(std::size_t)>& go_on,
                                         const std::function<void(std::span<const double>)>& each) {
  Communicator alone;
  return evaluate(engine, examples, objective, alone, go_on, each);
}

BatchSize largest_batch(std::span<const Example> examples, std::uint32_t batch, Objective objective) {
  std::vector<int> tokens, terms;
  for (const Example& e : examples) {
    const PackedSize size = packed_size(e, candidates_of(objective));
    tokens.push_back(size.tokens);
    terms.push_back(size.terms);
  }
  // A batch is a window of the epochs in a row, at a multiple of gcd(batch, examples): the end of one epoch, whole
  // ones, the beginning of another. Each of the three may hold any examples, so that one can stand in each.
  const auto largest_sum = [&](std::vector<int>& sizes) {
    std::ranges::sort(sizes, std::greater<>());
    const std::uint64_t count = sizes.size();
    std::vector<std::int64_t> sums(1);  // of the 0, 1, ... largest
    for (const int size : sizes) sums.push_back(sums.back() + size);
    std::int64_t largest = 0;
    for (std::uint64_t begin = 0; begin < count; begin += std::gcd(std::uint64_t{batch}, count)) {
      const std::uint64_t first = std::min(std::uint64_t{batch}, count - begin), rest = batch - first;
      largest =
          std::max(largest, sums[first] + static_cast<std::int64_t>(rest / count) * sums[count] + sums[rest % count]);
    }
    return static_cast<int>(std::min<std::int64_t>(largest, std::numeric_limits<int>::max()));
  };
  return {largest_sum(tokens), largest_sum(terms)};
}

BatchSize largest_evaluation(std::span<const Example> examples) {
  BatchSize largest;
  for (int begin = 0, end = 0; begin < std::ssize(examples); begin = end) {
    end = evaluation_end(examples, begin);
    BatchSize size;
    for (int i = begin; i < end; ++i) {
      const PackedSize one = packed_size(examples[static_cast<std::size_t>(i)], Candidates::all);
      size.tokens += one.tokens;
      size.terms += one.terms;
    }
    largest.tokens = std::max(largest.tokens, size.tokens);
    largest.terms = std::max(largest.terms, size.terms);
  }
  return largest;
}

std::uint64_t step_tokens(std::span<const Example> examples, std::span<const std::uint32_t> batch,
                          Objective objective) {
  std::uint64_t tokens = 0;
  for (const std::uint32_t i : batch)
    tokens += static_cast<std::uint64_t>(packed_size(examples[i], candidates_of(objective)).tokens);
  return tokens;
}

std::uint64_t evaluation_passes(std::span<const Example> examples) {
  std::uint64_t passes = 0;
  for (int begin = 0; begin < std::ssize(examples); begin = evaluation_end(examples, begin)) ++passes;
  return passes;
}

std::uint64_t evaluation_tokens(std::span<const Example> examples) {
  std::uint64_t tokens = 0;
  for (const Example& e : examples) tokens += static_cast<std::uint64_t>(packed_size(e, Candidates::all).tokens);
  return tokens;
}

}  // namespace distzo2
