// SPDX-License-Identifier: BSD-3-Clause
#include "io/trajectory_format.hpp"
#include "tests/fuzz/target.hpp"

#include <cstdint>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace distzo2 {
namespace {

/// Writes the checksum of the first `size` bytes behind them, where there is room.
void seal(std::string& bytes, std::size_t begin, std::size_t size) {
  if (bytes.size() < begin + size + sizeof(std::uint64_t)) return;
  const std::uint64_t hash = XXH3_64bits(bytes.data() + begin, size);
  std::memcpy(bytes.data() + begin + size, &hash, sizeof hash);
}

/// The same file with checksums that fit: what a checksum would catch is not all that can be wrong.
std::string resealed(std::string bytes) {
  constexpr std::size_t length_at = 8, fields_at = 12;
  std::uint32_t length = 0;
  if (bytes.size() < fields_at) return bytes;
  std::memcpy(&length, bytes.data() + length_at, sizeof length);
  const std::size_t header = fields_at + length;
  seal(bytes, 0, header);
  const std::size_t records = header + sizeof(std::uint64_t);
  if (bytes.size() < records) return bytes;
  std::size_t size = 0;
  if (!accepted([&] { size = record_size(decode_trajectory(bytes.substr(0, records), "t").header); })) return bytes;
  for (std::size_t at = records; at + size <= bytes.size(); at += size) seal(bytes, at, size - sizeof(std::uint64_t));
  return bytes;
}

std::string written(const Trajectory& t) {
  std::string bytes = encode_header(t.header);
  for (const StepRecord& r : t.steps) bytes += encode_record(t.header, r);
  for (const DigestRecord& r : t.digests)
    if (r.t == t.steps.size()) bytes += encode_record(t.header, r);
  return bytes;
}

/// What was read, written and read again is the same.
bool read_bytes(const std::string& bytes) {
  return accepted([&] {
    Trajectory t = decode_trajectory(bytes, "t");
    if (t.whole_bytes > bytes.size() || (t.whole_bytes < bytes.size()) != t.torn) found("a torn tail of no bytes");
    for (std::size_t i = 0; i < t.steps.size(); ++i)
      if (t.steps[i].t != i) found("steps that do not follow each other");
    if (!t.header.decay_mask) t.header.decay_mask = 0;
    const std::string again = written(t);
    Trajectory second;
    if (!accepted([&] { second = decode_trajectory(again, "t"); })) found("what was read is refused when written");
    if (written(second) != again) found("what was read is another when written");
    update_histories(t.steps);
    trajectory_digest(t.steps);
  });
}

bool read_records(std::string_view input) {
  read_bytes(std::string(input));
  return read_bytes(resealed(std::string(input)));
}

const RegisteredTarget trajectory_target("trajectory", read_records);

}  // namespace
}  // namespace distzo2
