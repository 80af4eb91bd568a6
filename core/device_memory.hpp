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

/// Bytes of each buffer of a device's passes; `tables` and `results` lie on the host as well.
struct DeviceSizes {
  std::uint64_t weights = 0;   // one matrix of a decoder block, all evaluations, in the compute precision; the head
                               // matrix is perturbed in ranges of rows that fit in it
  std::uint64_t hidden = 0;    // the residual stream: fp32, as all activations, of all evaluations and tokens
  std::uint64_t branch = 0;    // a norm's output or a matrix's result
  std::uint64_t wide = 0;      // q k v, then the MLP's hidden features
  std::uint64_t rounded = 0;   // the input of a product in the compute precision; none in fp32
  std::uint64_t gathered = 0;  // rows of embedding and position tables, in fp32
  std::uint64_t vectors = 0;   // perturbed one-dimensional tensors of a block
  std::uint64_t head = 0;      // rows of the head
  std::uint64_t logits = 0;    // of a chunk of these rows and a range of the vocabulary
  std::uint64_t softmax = 0;   // in double: two running numbers a row, target's logit and log-probability a term
  std::uint64_t rope = 0;      // cosines and sines
  std::uint64_t tables = 0;    // of a pass: token ids, positions, spans, tiles, records, directions
  std::uint64_t results = 0;   // log-probabilities, on the host alone
};
DeviceSizes device_sizes(const ModelConfig& model, Compute compute, const BatchShape& batch);

/// Elements of the largest matrix of a decoder block.
std::int64_t largest_matrix(const ModelConfig& model);

/// These as terms of a plan, with context and GEMM workspace. Attention keeps its softmax in registers: it has no score
/// matrix. z is made where it is used.
std::vector<MemoryTerm> device_terms(const ModelConfig& model, Compute compute, const BatchShape& batch);

}  // namespace distzo2
