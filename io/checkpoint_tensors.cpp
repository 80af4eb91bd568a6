// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/fail.hpp"

namespace distzo2 {

namespace {

/// Ends of names of tensors that say nothing: masks, frequencies that config.json gives, a format's version.
constexpr std::array<std::string_view, 4> buffers{"rotary_emb.inv_freq", ".attn.bias", ".masked_bias",
                                                  "decoder.version"};

bool is_buffer(std::string_view name) {
  return std::ranges::any_of(buffers, [&](std::string_view end) { return name.ends_with(end); });
}

/// The embedding that a tied head shares.
const Tensor& embedding_of(const TensorTable& table) {
  const auto found =
      std::ranges::find_if(table.tensors, [](const Tensor& t) { return t.name.ends_with("embed_tokens.weight"); });
  if (found == table.tensors.end()) {
    throw Error(ExitCode::internal, "a model without embed_tokens.weight");
  }
  return *found;
}

/// Whether two tensors of the files hold the same values, NaN apart.
bool equal(const CheckpointReader& reader, std::string_view a, std::string_view b, std::int64_t size) {
  constexpr std::int64_t piece = std::int64_t{1} << 18;
  std::vector<float> left;
  std::vector<float> right;
  for (std::int64_t at = 0; at < size; at += piece) {
    left.resize(static_cast<std::size_t>(std::min(piece, size - at)));
    right.resize(left.size());
    reader.read(a, at, left);
    reader.read(b, at, right);
    if (left != right) {
      return false;
    }
  }
  return true;
}

}  // namespace

void check_tensors(const CheckpointReader& reader, const ModelConfig& config, const TensorTable& table) {
  std::set<std::string, std::less<>> known;
  for (const Tensor& t : table.tensors) {
    reader.expect(t.name, t.matrix ? std::vector{t.rows, t.cols} : std::vector{t.cols});
    known.insert(reader.stored_name(t.name));
  }
  for (const std::string& name : reader.names()) {
    if (known.contains(name) || is_buffer(name)) {
      continue;
    }
    if (config.tied_head && name == "lm_head.weight") {
      const Tensor& embedding = embedding_of(table);
      reader.expect(name, std::vector{embedding.rows, embedding.cols});
      if (!equal(reader, name, embedding.name, embedding.size())) {
        fail(
            fmt::format("{}: tensor \"{}\" differs from the embedding, but config.json ties them "
                        "(tie_word_embeddings); set it to false there, or remove the tensor",
                        reader.folder().string(), name));
      }
      continue;
    }
    fail(
        fmt::format("{}: tensor \"{}\" belongs to no {} of the dimensions in config.json; accepted: a model "
                    "whose tensors are all used",
                    reader.folder().string(), name, config.architecture));
  }
}

}  // namespace distzo2
