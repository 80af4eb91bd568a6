// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/model_config.hpp"
#include "core/precision.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {

enum class MemoryPlace : std::uint8_t { device, host };

/// One line of a plan's table.
struct MemoryTerm {
  std::string name;
  std::uint64_t bytes = 0;
  MemoryPlace place = MemoryPlace::host;
};

/// The largest batch that goes forward at once.
struct BatchShape {
  int evaluations = 2;  // both signs of a direction
  int tokens = 0;
  int terms = 0;  // rows of the head
};

// What a device holds beside parameters and their buffers. The device code follows this file: each buffer there is one
// of these terms, allocated once, before the first step.

/// The process on the device: context, loaded kernels, and the workspace given to cuBLAS.
constexpr std::uint64_t device_context_bytes = std::uint64_t{536} << 20;
constexpr std::uint64_t device_gemm_workspace_bytes = std::uint64_t{64} << 20;

/// Logits exist for a chunk of rows and a range of the vocabulary, in fp32, at most this much at a time.
constexpr std::uint64_t device_logits_bytes = std::uint64_t{64} << 20;

/// Rows that a GEMM takes are padded to this.
constexpr int device_row_tile = 128;

/// The terms, in the order of a pass:
/// - context and GEMM workspace: constants;
/// - perturbed weights: one matrix of a decoder block, all evaluations, in the compute precision; head and embedding
///   are perturbed in ranges of rows that fit in it;
/// - residual stream; a norm's output or a matrix's result; q k v, then the MLP's hidden features: fp32, all
///   evaluations, all tokens;
/// - the input of a product rounded to the compute precision (none in fp32);
/// - gathered rows of embedding and position tables, in fp32; perturbed one-dimensional tensors of a block;
/// - rows of the head, logits of a chunk of them, and running sums of each row's softmax in double.
/// Attention keeps its softmax in registers: it has no score matrix. z is made where it is used.
std::vector<MemoryTerm> device_terms(const ModelConfig& model, Compute compute, const BatchShape& batch);

}  // namespace distzo2
