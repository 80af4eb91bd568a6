// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/random.hpp"
#include "core/step.hpp"
#include "core/trajectory_record.hpp"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace distzo2 {

/// What stands before the records: all that, with the base model, makes any theta_t again.
struct TrajectoryHeader {
  std::uint32_t generator = generator_version;  // core/random.hpp
  UpdateRule rule;
  StepRule step;
  Objective objective = Objective::classification;
  std::uint64_t theta0_digest = 0;  // of the base model as imported
  std::uint64_t deck_digest = 0;    // of the deck's mathematical keys
  std::uint64_t data_digest = 0;    // of the training examples' tokens
  /// decay_mask_digest of the parameters. Files of format version 1 have none: their mask is every tensor of two or
  /// more dimensions, as the model's table then and now has it.
  std::optional<std::uint64_t> decay_mask;
  std::string mathematical_keys;  // "key: value" lines, so that a difference can be named
  std::string fingerprint;        // arithmetic of the machine that began the run
};

/// theta's digest at a step: after records 0 .. t - 1.
struct DigestRecord {
  std::uint32_t t = 0;
  std::uint64_t theta_digest = 0;
};

struct Trajectory {
  TrajectoryHeader header;
  std::vector<StepRecord> steps;  // steps[i].t == i
  std::vector<DigestRecord> digests;
  std::uint64_t whole_bytes = 0;  // up to the end of the last whole record
  bool torn = false;              // bytes after that were records cut short
};

/// Reads `trajectory.zoj`. A tail without a whole record is left out; anything else that is wrong (magic, version,
/// checksum, order) throws Error (file) with record number and cause.
Trajectory read_trajectory(const std::filesystem::path& path);

/// A trajectory holds at most this much: a billion steps would be 64 GB, far from any run.
constexpr std::size_t most_trajectory_bytes = std::size_t{16} << 30;

/// All bytes of such a file, whatever they are.
std::string read_trajectory_bytes(const std::filesystem::path& path);

/// XXH3-64 over t, g and L of the records: equal runs have equal digests.
std::uint64_t trajectory_digest(const std::vector<StepRecord>& steps);

/// The digest of the updates up to and with this record, `before` being that of those before it (0 at the start). It
/// says which theta a base model has come to.
std::uint64_t update_history(std::uint64_t before, const StepRecord& record);

/// update_history of the first 0, 1, ... all of these records.
std::vector<std::uint64_t> update_histories(std::span<const StepRecord> records);

/// Appends records: each is handed to the system at once (so that only a crash of the machine loses it) and synced by a
/// helper thread at most once in `sync_s` seconds (0: at every record, by the caller). A write or sync that fails
/// throws Error (file) from the next call.
class TrajectoryWriter {
public:
  /// A new file, in place of one that stands there.
  TrajectoryWriter(const std::filesystem::path& path, const TrajectoryHeader& header, double sync_s);
  /// Goes on after `found`, cutting a torn tail off.
  TrajectoryWriter(const std::filesystem::path& path, const Trajectory& found, double sync_s);
  ~TrajectoryWriter();
  TrajectoryWriter(const TrajectoryWriter&) = delete;
  TrajectoryWriter& operator=(const TrajectoryWriter&) = delete;

  void append(const StepRecord& record);
  void append(const DigestRecord& record);
  void sync();  // returns when all records are on the device
  /// update_history of the first `records` records, which have been appended. From any thread.
  std::uint64_t history(std::uint32_t records) const;
  /// Throws Error (file) where the path no longer leads to the file that is written.
  void check_in_place() const;

private:
  void write(const std::string& bytes);
  void start_syncing(double sync_s);
  void sync_file();
  void fail_if_failed();

  std::filesystem::path path_;
  int file_ = -1;
  TrajectoryHeader header_;
  bool sync_each_ = false;
  std::mutex sync_mutex_;     // held by the one that syncs
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::uint64_t> histories_{0};
  std::condition_variable wake_;
  bool dirty_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread syncer_;
};

}  // namespace distzo2
