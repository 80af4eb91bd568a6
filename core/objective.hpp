// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/packing.hpp"
#include "core/precision.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// Sum of an example's loss terms under one evaluation, and their number; `log_prob` are all terms of that evaluation
/// (Engine::forward's log_prob + e * terms). language_model: -log p of each token of the right candidate;
/// classification: one term, softmax cross-entropy over the candidates' mean token log-probabilities.
double sequence_loss(Objective objective, std::span<const double> log_prob, const ExampleTerms& terms, double& count);

/// Mean token log-probability of every packed candidate.
std::vector<double> candidate_scores(std::span<const double> log_prob, const ExampleTerms& terms);

/// The candidate with the highest score: the lowest index among equals; NaN never wins, and all NaN gives 0.
int predict(std::span<const double> scores);

/// log(sum(exp(x))) without overflow; -inf for an empty range.
double log_sum_exp(std::span<const double> x);

/// What an evaluation over a data set adds up, in the order in which examples are added.
struct EvaluationSum {
  int labels = 0;                        // the most candidates seen
  std::vector<std::uint64_t> confusion;  // (labels, labels): [right * labels + predicted]
  std::uint64_t examples = 0;
  std::uint64_t right = 0;
  double loss = 0.0;   // sum of the loss terms of `objective`
  double terms = 0.0;  // their number
  double accuracy() const { return examples == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(examples); }
  double mean_loss() const { return terms == 0.0 ? 0.0 : loss / terms; }
};

/// What an example whose candidates were all packed adds to an evaluation: ranks exchange these.
struct ExampleResult {
  double loss = 0.0, terms = 0.0;
  std::int32_t label = 0, labels = 0;
  std::int32_t predicted = -1;  // -1: a score is not finite, so that there is no answer
  std::int32_t unused = 0;      // so that no byte is undefined
};
ExampleResult example_result(Objective objective, std::span<const double> log_prob, const ExampleTerms& terms);

/// Adds one example. One without an answer is not right, and no confusion count holds it.
void add_result(EvaluationSum& sum, const ExampleResult& result);
/// Both at once.
void add_example(EvaluationSum& sum, Objective objective, std::span<const double> log_prob, const ExampleTerms& terms);

}  // namespace distzo2
