// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/example.hpp"
#include "core/packed_batch.hpp"
#include "core/precision.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// Where a candidate's tokens stand among a packed batch's loss terms.
struct TermRange {
  int first = 0;
  int count = 0;
};

/// The loss terms of one example: a range for every packed candidate, and which of these is right.
struct ExampleTerms {
  std::vector<TermRange> candidates;
  int label = 0;  // index into `candidates`
};

struct PackedExamples {
  PackedBatch batch;
  std::vector<ExampleTerms> examples;  // in the order asked for
};

/// Which candidates are packed: all of them (classification, evaluation) or the right one (language-model training).
enum class Candidates : std::uint8_t { all, label };

constexpr Candidates candidates_of(Objective o) {
  return o == Objective::classification ? Candidates::all : Candidates::label;
}

/// Packs examples[i] for every i of `indices`, in that order. A prompt stands once; each candidate is a span with the
/// prompt as its prefix, without its last token, which nothing reads: one-token candidates add no row. A term is a
/// candidate's token, read at the row before it. Throws Error (file) for an empty prompt or candidate.
PackedExamples pack_examples(std::span<const Example> examples, std::span<const std::uint32_t> indices,
                             Candidates which);

/// Rows and terms that `pack_examples` makes of one example.
struct PackedSize {
  int tokens = 0;
  int terms = 0;
};
PackedSize packed_size(const Example& example, Candidates which);

}  // namespace distzo2
