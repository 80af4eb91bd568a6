// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest_chunks.hpp"

namespace distzo2 {

std::vector<DigestChunk> digest_chunks(const TensorTable& table) {
  std::vector<DigestChunk> chunks;
  const auto at = [&](int i) -> const Tensor& { return table.tensors[static_cast<std::size_t>(i)]; };
  for (int i = 0; i < std::ssize(table.tensors);) {
    int last = i;  // the last tensor of the run
    while (last + 1 < std::ssize(table.tensors) && at(last + 1).block == at(i).block &&
           at(last + 1).matrix == at(i).matrix)
      ++last;
    const std::int64_t end = at(last).first + at(last).size();
    for (std::int64_t first = at(i).first; first < end; first += index_alignment) {
      while (at(i).first + at(i).size() <= first) ++i;
      chunks.push_back({first, std::min(first + index_alignment, end), i});
    }
    i = last + 1;
  }
  return chunks;
}

}  // namespace distzo2
