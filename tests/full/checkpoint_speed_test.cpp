// SPDX-License-Identifier: BSD-3-Clause
// The time that a checkpoint takes, beside that of copying the same bytes with the same direct I/O, taken in turns. The
// size is 1 GB, or $DISTZO2_CHECKPOINT_GB.
#include "io/checkpoint_part.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "io/block_file.hpp"
#include "io/direct_file.hpp"
#include "io/io_pool.hpp"
#include "tests/full/record_result.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr int threads = 3;

/// Matrices of 4096 x 4096 in bf16, in chunks of the usual size.
ChunkTable table_of_bytes(double gigabytes) {
  constexpr std::int64_t side = 4096;
  const auto matrices = static_cast<int>(gigabytes * 1e9 / (2.0 * side * side)) + 1;
  std::vector<std::vector<TensorSpec>> blocks;
  for (int i = 0; i < matrices; ++i) blocks.push_back({{"m" + std::to_string(i), side, side, true}});
  return make_chunk_table(make_tensor_table(blocks), Storage::bf16);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// File to file, whole chunks at a time on as many threads, then durable.
double copy_s(const fs::path& from, const fs::path& to, std::uint64_t bytes, std::size_t request) {
  const auto started = Clock::now();
  DirectFile source(from, true), target(to, true);
  target.allocate(bytes, "");
  IoPool pool(threads);
  std::atomic<std::uint64_t> next{0};
  pool.run(threads + 1, [&](int) {
    const PageBuffer memory = make_page_buffer(request);
    for (std::uint64_t at = request * next++; at < bytes; at = request * next++) {
      const std::size_t n = std::min<std::uint64_t>(request, bytes - at);
      iovec part{memory.get(), n};
      source.read(at, {&part, 1});
      part = {memory.get(), n};
      target.write(at, {&part, 1});
    }
  });
  target.sync();
  return seconds_since(started);
}

TEST(CheckpointSpeed, of_a_store_on_disk_is_that_of_a_copy) {
  const char* const given = std::getenv("DISTZO2_CHECKPOINT_GB");
  const ChunkTable table = table_of_bytes(given != nullptr ? std::atof(given) : 1.0);
  const int chunks = static_cast<int>(table.chunks.size());
  const TemporaryFolder folder;
  BlockFileOptions options;
  BlockFile store(folder / "store", table, Storage::bf16, options);
  const PageBuffer noise = make_page_buffer(table.slot_bytes);
  std::uint64_t word = 1;
  for (std::size_t i = 0; i + 8 <= table.slot_bytes; i += 8) {
    word = word * 6364136223846793005U + 1442695040888963407U;
    std::copy_n(reinterpret_cast<const std::byte*>(&word), 8, noise.get() + i);
  }
  for (int c = 0; c < chunks; ++c) store.write(c, c + 1, noise.get(), 0);
  store.sync();
  const std::uint64_t bytes = part_bytes(table, 0, chunks);

  std::vector<double> checkpoint, copy, ratio;
  for (int turn = 0; turn < 5; ++turn) {
    const fs::path place = folder / ("checkpoint-" + std::to_string(turn));
    fs::create_directory(place);
    const auto started = Clock::now();
    write_checkpoint_part(
        place, table, 0, chunks,
        [&](int c, std::byte* to) {
          store.read(c, c + 1, to);
          return store.version(c);
        },
        threads);
    checkpoint.push_back(seconds_since(started));
    copy.push_back(copy_s(place / part_file_name(0), folder / "copy", bytes, table.slot_bytes));
    ratio.push_back(checkpoint.back() / copy.back());
    fs::remove(folder / "copy");
    fs::remove_all(place);
  }
  nlohmann::ordered_json measured{{"bytes", bytes},
                                  {"direct", store.direct()},
                                  {"checkpoint_s", checkpoint},
                                  {"copy_s", copy},
                                  {"median_ratio", median(ratio)},
                                  {"bytes_per_s", static_cast<double>(bytes) / median(checkpoint)}};
  record_result("checkpoint_speed", measured);
  EXPECT_LE(median(ratio), 1.2) << measured.dump(2);
}

}  // namespace
}  // namespace distzo2
