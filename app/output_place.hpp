// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "app/run_folder.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace distzo2 {

// Where a command may write: nowhere that something of the user's would be lost.

/// Whether a path, existing or not, is this folder or lies in it; links are followed.
bool lies_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Throws Error (usage) where the deck's run would write into its model's folder or a folder that holds it, or among
/// its data; or its timeline over something else; or where a file, or a link to nothing, stands in its folder's place;
/// and as check_model_places.
void check_output_place(const RunConfig& config);

/// Throws Error (usage) where something stands in the place of a model of the run that its writing would not replace.
void check_model_places(const RunFolder& run, const RunConfig& config);

/// Throws Error (usage) where `memory/scratch folder` lies in the model's folder, or is none.
void check_scratch_place(const RunConfig& config);

/// A file that a command writes, in place of an older one of its kind.
struct OutputKind {
  std::string key;                                          // "--predictions": what names it
  std::string contents;                                     // "predictions"
  std::function<bool(const std::filesystem::path&)> holds;  // whether an existing file is of this kind, or empty
};

/// Throws Error (usage) where the file is one that the deck's commands read, exists and is of no such kind, is a folder
/// or lies in none.
void check_output_file(const OutputKind& kind, const std::filesystem::path& file, const RunConfig& config);

}  // namespace distzo2
