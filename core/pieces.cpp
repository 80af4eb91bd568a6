// SPDX-License-Identifier: BSD-3-Clause
#include "core/pieces.hpp"

#include <exception>

namespace distzo2 {

void for_each_piece(std::size_t pieces, const std::function<void(std::size_t)>& work) {
  std::size_t failed = pieces;  // the lowest piece that threw
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t i = 0; i < pieces; ++i) {
    try {
      work(i);
    } catch (...) {
#pragma omp critical(distzo2_pieces)
      if (i < failed) {
        failed = i;
        error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace distzo2
