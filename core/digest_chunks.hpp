// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/tensor_table.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// Global indices that are hashed together (design section 3): of one type in one block, up to a multiple of
/// index_alignment or to the end of a run of tensors of that type. They may belong to several tensors.
struct DigestChunk {
  std::int64_t first = 0, end = 0;
  int tensor = 0;  // that holds `first`
};

/// All of a model, in canonical order.
std::vector<DigestChunk> digest_chunks(const TensorTable& table);

/// Calls part(tensor, offset, elements) for what these chunks have of one tensor after another, in as long parts as
/// they allow.
template <class Part>
void for_each_part(const TensorTable& table, std::span<const DigestChunk> chunks, Part&& part) {
  int tensor = -1;
  std::int64_t begin = 0, end = 0;  // global indices of the part that is gathered
  const auto hand_over = [&] {
    if (end > begin) part(tensor, begin - table.tensors[static_cast<std::size_t>(tensor)].first, end - begin);
  };
  for (const DigestChunk& chunk : chunks) {
    int i = chunk.tensor;
    for (std::int64_t first = chunk.first; first < chunk.end; ++i) {
      const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
      const std::int64_t last = std::min(chunk.end, t.first + t.size());
      if (i != tensor || first != end) {
        hand_over();
        tensor = i;
        begin = first;
      }
      first = end = last;
    }
  }
  hand_over();
}

}  // namespace distzo2
