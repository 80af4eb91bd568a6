// SPDX-License-Identifier: BSD-3-Clause
#include "core/objective.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace distzo2 {

namespace {

std::span<const double> of(std::span<const double> log_prob, const TermRange& range) {
  if (range.first < 0 || range.count < 1 ||
      static_cast<std::size_t>(range.first) + static_cast<std::size_t>(range.count) > log_prob.size()) {
    throw Error(ExitCode::internal, "a candidate's loss terms lie outside the batch's");
  }
  return log_prob.subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count));
}

double sum(std::span<const double> x) {
  double total = 0.0;
  for (const double v : x) {
    total += v;
  }
  return total;
}

}  // namespace

double log_sum_exp(std::span<const double> x) {
  double top = -std::numeric_limits<double>::infinity();
  for (const double v : x) {
    if (std::isnan(v)) {
      return v;
    }
    top = std::max(top, v);
  }
  if (std::isinf(top)) {
    return top;  // all -inf, or a +inf among them
  }
  double total = 0.0;
  for (const double v : x) {
    total += std::exp(v - top);
  }
  return top + std::log(total);
}

std::vector<double> candidate_scores(std::span<const double> log_prob, const ExampleTerms& terms) {
  std::vector<double> scores;
  scores.reserve(terms.candidates.size());
  for (const TermRange& range : terms.candidates) {
    scores.push_back(sum(of(log_prob, range)) / range.count);
  }
  return scores;
}

double sequence_loss(Objective objective, std::span<const double> log_prob, const ExampleTerms& terms, double& count) {
  const auto label = static_cast<std::size_t>(terms.label);
  if (label >= terms.candidates.size()) {
    throw Error(ExitCode::internal, "an example's label is none of its packed candidates");
  }
  if (objective == Objective::language_model) {
    const TermRange& range = terms.candidates[label];
    count = range.count;
    return -sum(of(log_prob, range));
  }
  const std::vector<double> scores = candidate_scores(log_prob, terms);
  count = 1.0;
  return log_sum_exp(scores) - scores[label];
}

int predict(std::span<const double> scores) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i) {
    if (scores[i] > scores[best] || (std::isnan(scores[best]) && !std::isnan(scores[i]))) {
      best = i;
    }
  }
  return static_cast<int>(best);
}

ExampleResult example_result(Objective objective, std::span<const double> log_prob, const ExampleTerms& terms) {
  ExampleResult result;
  result.label = terms.label;
  result.labels = static_cast<std::int32_t>(terms.candidates.size());
  result.loss = sequence_loss(objective, log_prob, terms, result.terms);
  const std::vector<double> scores = candidate_scores(log_prob, terms);
  if (std::ranges::all_of(scores, [](double s) { return std::isfinite(s); })) result.predicted = predict(scores);
  return result;
}

void add_result(EvaluationSum& sum, const ExampleResult& result) {
  const int labels = result.labels;
  if (labels > sum.labels) {
    std::vector<std::uint64_t> wider(static_cast<std::size_t>(labels) * static_cast<std::size_t>(labels), 0);
    for (int right = 0; right < sum.labels; ++right) {
      for (int got = 0; got < sum.labels; ++got) {
        wider[static_cast<std::size_t>(right * labels + got)] =
            sum.confusion[static_cast<std::size_t>(right * sum.labels + got)];
      }
    }
    sum.confusion = std::move(wider);
    sum.labels = labels;
  }
  sum.loss += result.loss;
  sum.terms += result.terms;
  ++sum.examples;
  if (result.predicted < 0) {
    return;
  }
  ++sum.confusion[static_cast<std::size_t>(result.label * sum.labels + result.predicted)];
  sum.right += result.predicted == result.label ? 1 : 0;
}

void add_example(EvaluationSum& sum, Objective objective, std::span<const double> log_prob, const ExampleTerms& terms) {
  add_result(sum, example_result(objective, log_prob, terms));
}

}  // namespace distzo2
