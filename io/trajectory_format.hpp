// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "io/trajectory_file.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace distzo2 {

// The bytes of trajectory.zoj, little-endian:
//   header: magic "ZOJ1", u32 format version, u32 length of what follows, fields, strings (u32 length, bytes), u64 XXH3
//           version 1, which is still read, has no u64 decay mask between the data's digest and the strings
//   record: u32 kind (1 step, 2 digest), u32 t, then
//     step:   f64 lr, f32 wd, f32 c[q], f64 g[q], f64 g_raw[q], f64 L[E], padding
//     digest: u64 digest, padding
//     u64 XXH3-64 of the bytes before. One size for both, 28 + 20 q + 8 E bytes: 64 for the central difference with
//     q = 1, whose E is 2.

/// In the newest version; the header of a file of version 1 (no decay mask) cannot be written.
std::string encode_header(const TrajectoryHeader& header);
std::string encode_record(const TrajectoryHeader& header, const StepRecord& record);
std::string encode_record(const TrajectoryHeader& header, const DigestRecord& record);
std::size_t record_size(const TrajectoryHeader& header);
/// A whole file of them, a digest behind the steps that it is of.
std::string encode_trajectory(const TrajectoryHeader& header, std::span<const StepRecord> steps,
                              std::span<const DigestRecord> digests);

/// Everything whole in these bytes; `name` stands in messages.
Trajectory decode_trajectory(std::string_view bytes, const std::string& name);

/// Where the bytes of two trajectories differ, "the header" or "record 7", up to the end of the shorter one; empty: one
/// is the beginning of the other. Both end with a whole record.
std::string first_difference(std::string_view a, std::string_view b);

}  // namespace distzo2
