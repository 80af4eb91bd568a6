// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"
#include "core/precision.hpp"
#include "io/checkpoint_part.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// What a checkpoint is: the model's chunks as they were stored after so many records, in parts. Records that a chunk's
/// version does not include yet stand in the trajectory.
struct CheckpointManifest {
  std::uint32_t step = 0;                     // records taken
  std::uint64_t history = 0;                  // update_history of them (io/trajectory_file.hpp)
  std::uint64_t theta0_digest = 0;            // of the base model
  std::optional<std::uint64_t> theta_digest;  // at `step`; none where it was not computed
  Storage storage = Storage::fp32;
  std::uint64_t chunk_table = 0;      // chunk_table_digest
  std::vector<CheckpointPart> parts;  // in order; they hold every chunk once
};

/// manifest.json of a checkpoint's folder.
std::filesystem::path manifest_file(const std::filesystem::path& folder);

/// Writes it, durably: the last file of a checkpoint.
void write_manifest(const std::filesystem::path& folder, const CheckpointManifest& manifest);

/// Reads it. Error (file) where it is missing, damaged (it has a checksum of its own), or of a model whose chunks are
/// not those of `table` in this precision.
CheckpointManifest read_manifest(const std::filesystem::path& folder, const ChunkTable& table, Storage storage);

/// The step of a checkpoint, as its manifest says, before anything is known of the model. Error (file) as above.
std::uint32_t checkpoint_step(const std::filesystem::path& folder);

}  // namespace distzo2
