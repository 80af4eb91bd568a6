// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device_memory.hpp"
#include "core/model_config.hpp"
#include "core/packed_batch.hpp"
#include "core/parameter_store.hpp"
#include "core/pass_times.hpp"
#include "core/perturbation.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>

namespace distzo2 {

/// The tensors of a model, as its family lays them out.
TensorTable tensor_table(const ModelConfig& config);

class Backend;        // core/backend.hpp
struct BackendSetup;  // the same

/// What computes where it is not the host's threads: the device whose memory this is, or what `make_backend` makes, on
/// host memory.
struct EngineDevice {
  ComputeMemory* memory = nullptr;  // outlives the engine
  std::function<std::unique_ptr<Backend>(const BackendSetup&)> make_backend;
  BatchShape largest;  // its buffers are made for it
  bool reproducible = true;
};

/// A model with its parameters and scratch memory: runs all evaluations of a batch forward together, stage by stage.
class Engine {
public:
  Engine(ModelConfig config, UpdateRule rule, Compute compute);
  /// Parameters on the tiers that `placement` says (of `make_units`); `disk` and `node` as ParameterStore takes them.
  Engine(ModelConfig config, UpdateRule rule, Compute compute, const Placement& placement, BlockStorage* disk,
         const UnitPipeline::Options& options = {}, const EngineDevice& device = {}, NodeMemory* node = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelConfig& config() const;
  ParameterStore& store();
  const ParameterStore& store() const;

  /// log_prob[e * terms + i] of every evaluation and loss term. Brings every tensor up to date on its way.
  void forward(const PackedBatch& batch, const Perturbation& perturbation, std::span<double> log_prob);

  /// logits[(e * terms + i) * vocab + v] of the terms' tokens, whole rows: for tests and inspection.
  void logits(const PackedBatch& batch, const Perturbation& perturbation, std::span<float> logits);

  std::size_t activation_bytes() const;  // allocated so far
  PassTimes take_times();
  void time_products();  // from now on, at two readings of the clock a GEMM call
  /// What the bits of a continuation depend on: GEMM library and version, instruction set, compute precision, tiles.
  std::string arithmetic_fingerprint() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What `activation_bytes` comes to at most on the host's threads, for batches no larger than this.
std::size_t planned_activation_bytes(const ModelConfig& config, const BatchShape& largest, int threads);

}  // namespace distzo2
