// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/model_config.hpp"
#include "core/tensor_table.hpp"
#include "io/checkpoint_folder.hpp"

namespace distzo2 {

/// That a model's files hold the tensors of its family, each of its shape, and no others: one that is left over (a
/// layer beyond num_hidden_layers, a bias) would mean another model. Buffers that older files hold, and a head that
/// repeats the tied embedding, are passed over. Error (file) naming file and tensor.
void check_tensors(const CheckpointReader& reader, const ModelConfig& config, const TensorTable& table);

}  // namespace distzo2
