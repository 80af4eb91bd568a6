// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest.hpp"

#include "core/error.hpp"

#include <xxhash.h>

#include <bit>
#include <string>

namespace distzo2 {

static_assert(std::endian::native == std::endian::little, "values are hashed as they stand in memory");

std::uint64_t digest_chunk(std::uint64_t first, std::span<const float> values) {
  if (first % digest_chunk_size != 0 || values.size() > digest_chunk_size) {
    throw Error(ExitCode::internal, "digest of " + std::to_string(values.size()) + " values from index " +
                                        std::to_string(first) + ": not one chunk of " +
                                        std::to_string(digest_chunk_size) + " indices");
  }
  return XXH3_64bits_withSeed(values.data(), values.size_bytes(), first);
}

std::uint64_t digest_updates(std::span<const StepRecord> records) {
  std::uint64_t digest = records.size();
  for (const StepRecord& r : records) {
    const float decay = decay_factor(r);
    digest = XXH3_64bits_withSeed(&r.t, sizeof r.t, digest);
    digest = XXH3_64bits_withSeed(&decay, sizeof decay, digest);
    digest = XXH3_64bits_withSeed(r.c.data(), r.c.size() * sizeof(float), digest);
  }
  return digest;
}

}  // namespace distzo2
