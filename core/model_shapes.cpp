// SPDX-License-Identifier: BSD-3-Clause
#include "core/model_shapes.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <array>

namespace distzo2 {
namespace {

struct Shape {
  const char* name;
  FamilyKind family;
  std::int64_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, positions;
  bool tied;
  double norm_eps, theta;
};

constexpr FamilyKind opt = FamilyKind::opt, llama = FamilyKind::llama, qwen3 = FamilyKind::qwen3;

constexpr Shape opt_shape(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {name, opt, 50272, hidden, layers, heads, heads, hidden / heads, 4 * hidden, 2048, true, 1e-5, 0};
}
constexpr Shape llama2_shape(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                             std::int64_t kv_heads, std::int64_t ffn) {
  return {name, llama, 32000, hidden, layers, heads, kv_heads, hidden / heads, ffn, 4096, false, 1e-5, 1e4};
}
constexpr Shape llama3_shape(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                             std::int64_t ffn) {
  return {name, llama, 128256, hidden, layers, heads, 8, hidden / heads, ffn, 8192, false, 1e-5, 5e5};
}
constexpr Shape qwen3_shape(const char* name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                            std::int64_t ffn, bool tied) {
  return {name, qwen3, 151936, hidden, layers, heads, 8, 128, ffn, 40960, tied, 1e-6, 1e6};
}

constexpr std::array shapes{
    Shape{"opt-tiny", opt, 512, 64, 4, 4, 4, 16, 256, 2048, true, 1e-5, 0},
    opt_shape("opt-125m", 12, 768, 12),
    opt_shape("opt-350m", 24, 1024, 16),
    opt_shape("opt-1.3b", 24, 2048, 32),
    opt_shape("opt-2.7b", 32, 2560, 32),
    opt_shape("opt-6.7b", 32, 4096, 32),
    opt_shape("opt-13b", 40, 5120, 40),
    opt_shape("opt-30b", 48, 7168, 56),
    opt_shape("opt-66b", 64, 9216, 72),
    opt_shape("opt-175b", 96, 12288, 96),
    Shape{"llama-tiny", llama, 512, 64, 4, 4, 2, 16, 192, 2048, false, 1e-5, 1e4},
    Shape{"smollm2-135m", llama, 49152, 576, 30, 9, 3, 64, 1536, 8192, true, 1e-5, 1e5},
    llama2_shape("llama-2-7b", 32, 4096, 32, 32, 11008),
    llama2_shape("llama-2-13b", 40, 5120, 40, 40, 13824),
    llama2_shape("llama-2-70b", 80, 8192, 64, 8, 28672),
    llama3_shape("llama-3-8b", 32, 4096, 32, 14336),
    llama3_shape("llama-3-70b", 80, 8192, 64, 28672),
    Shape{"qwen3-tiny", qwen3, 512, 64, 4, 4, 2, 32, 192, 2048, true, 1e-6, 1e6},
    qwen3_shape("qwen3-0.6b", 28, 1024, 16, 3072, true),
    qwen3_shape("qwen3-1.7b", 28, 2048, 16, 6144, true),
    qwen3_shape("qwen3-4b", 36, 2560, 32, 9728, true),
    qwen3_shape("qwen3-8b", 36, 4096, 32, 12288, false),
    qwen3_shape("qwen3-14b", 40, 5120, 40, 17408, false),
    qwen3_shape("qwen3-32b", 64, 5120, 64, 25600, false),
};

}  // namespace

const std::vector<std::string>& model_shape_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Shape& s : shapes) list.emplace_back(s.name);
    return list;
  }();
  return names;
}

ModelConfig model_shape(std::string_view name, std::optional<bool> tied_head) {
  const auto* const s = std::ranges::find(shapes, name, &Shape::name);
  if (s == shapes.end()) throw Error(ExitCode::usage, "there is no model shape \"" + std::string(name) + "\"");
  ModelConfig m;
  m.family = s->family;
  m.architecture = s->family == opt ? "OPTForCausalLM" : s->family == llama ? "LlamaForCausalLM" : "Qwen3ForCausalLM";
  m.vocab = s->vocab;
  m.hidden = s->hidden;
  m.layers = s->layers;
  m.heads = s->heads;
  m.kv_heads = s->kv_heads;
  m.head_dim = s->head_dim;
  m.ffn = s->ffn;
  m.max_positions = s->positions;
  m.norm_eps = s->norm_eps;
  m.tied_head = tied_head.value_or(s->tied);
  if (s->family == opt) {
    const bool is_350m = name == "opt-350m";  // alone in its projections, and in norms after each residual sum
    m.embed_dim = is_350m ? 512 : s->hidden;
    m.norm_before = !is_350m;
    m.final_norm = !is_350m;
  } else {
    m.rope.theta = s->theta;
  }
  return m;
}

const char* name_of(FamilyKind family) {
  return family == opt ? "opt" : family == llama ? "llama" : "qwen3";
}

}  // namespace distzo2
