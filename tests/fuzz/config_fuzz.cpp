// SPDX-License-Identifier: BSD-3-Clause
#include "io/hf_config.hpp"
#include "tests/fuzz/target.hpp"

namespace distzo2 {
namespace {

bool read_config(std::string_view input) {
  static const std::filesystem::path folder = fuzz_folder("config");
  write_bytes(folder / "config.json", input);
  return accepted([&] {
    const ModelConfig m = read_model_config(folder);
    unknown_config_keys(folder);
    // The bytes of any tensor, and of all layers, fit 64 bits.
    std::int64_t product = 0;
    for (const std::int64_t rows : {m.vocab, m.heads * m.head_dim, m.ffn})
      if (rows < 1 || m.hidden < 1 || __builtin_mul_overflow(rows, m.hidden, &product) ||
          __builtin_mul_overflow(product, 16 * m.layers, &product))
        found("dimensions beyond 64 bits");
  });
}

const RegisteredTarget config_target("config", read_config);

}  // namespace
}  // namespace distzo2
