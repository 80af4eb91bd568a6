// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// Where the time of passes went since the last call (bench step). Weights, GEMM and products are means over threads.
struct PassTimes {
  double weights_s = 0;    // z, the deferred update, perturbed panels
  double gemm_s = 0;       // multiplying, writing the results, the head's softmax
  double product_s = 0;    // of gemm_s, the products alone, after time_products()
  double attention_s = 0;  // wall time
  double norm_s = 0;       // wall time
  double gemm_flop = 0;
};

}  // namespace distzo2
