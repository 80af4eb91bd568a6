// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "io/trajectory_file.hpp"

#include <filesystem>

namespace distzo2 {

/// A trajectory and the base model that its run began with.
struct ReplaySource {
  std::filesystem::path file;
  Trajectory found;
  ModelSection model;
  std::string describe_model() const;  // its folder, or its shape
};

/// Reads a trajectory, or that of a run folder. The base model is the folder `model`; where that is empty, the one that
/// the run's deck beside it names: Error (usage) where there is none.
ReplaySource find_replay(const std::filesystem::path& trajectory, const std::filesystem::path& model);

/// The base model's weights as they are, infinities too: theta_0's digest says whether they are the run's.
WeightSource base_weights(const ReplaySource& source);

}  // namespace distzo2
