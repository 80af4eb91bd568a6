// SPDX-License-Identifier: BSD-3-Clause
#include "io/disk_speed.hpp"

#include "core/error.hpp"
#include "io/direct_file.hpp"
#include "io/io_pool.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace distzo2 {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t memory_bytes = std::size_t{256} << 20;

/// Bytes that no disk can compress.
void fill_with_noise(std::byte* to, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes; i += sizeof seed) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    std::memcpy(to + i, &seed, sizeof seed);
  }
}

}  // namespace

DiskSpeed measure_disk(const std::filesystem::path& folder, const DiskMix& mix, std::uint64_t bytes, double seconds) {
  const std::size_t request = round_up_to_page(std::max<std::size_t>(mix.request_bytes, 1));
  const std::uint64_t requests = std::max<std::uint64_t>(bytes / request, 4);
  DirectFile file(folder / fmt::format("disk-speed-{}.tmp", ::getpid()), mix.direct);
  if (::unlink(file.path().c_str()) != 0)
    throw Error(ExitCode::file, fmt::format("{}: cannot be removed: {}", file.path().string(), std::strerror(errno)));
  file.allocate(requests * request, "free some, or measure another folder");

  IoPool pool(mix.threads);
  const auto workers = static_cast<std::uint64_t>(mix.threads) + 1;
  // A run moves each byte once: memory that stays in the processor's cache would flatter the disk.
  const std::uint64_t places = std::clamp<std::uint64_t>(memory_bytes / request, 1, requests) / workers + 1;
  const PageBuffer memory = make_page_buffer(places * workers * request);
  fill_with_noise(memory.get(), places * workers * request, 0x9e3779b97f4a7c15U);
  /// The n-th request of a worker.
  const auto place = [&](int w, std::uint64_t n) {
    return memory.get() + (static_cast<std::uint64_t>(w) * places + n % places) * request;
  };
  const auto move = [&](bool reads, std::uint64_t at, std::byte* buffer) {
    iovec part{buffer, request};
    if (reads)
      file.read(at * request, {&part, 1});
    else
      file.write(at * request, {&part, 1});
  };
  std::atomic<std::uint64_t> filled{0};
  pool.run(static_cast<int>(workers), [&](int w) {
    for (std::uint64_t i = filled++, n = 0; i < requests; i = filled++, ++n) move(false, i, place(w, n));
  });
  file.sync();

  std::atomic<std::uint64_t> next{0}, read{0}, written{0};
  const double share = std::clamp(mix.read_share, 0.0, 1.0);
  const auto reads_before = [&](std::uint64_t i) { return static_cast<std::uint64_t>(share * static_cast<double>(i)); };
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  pool.run(static_cast<int>(workers), [&](int w) {
    std::uint64_t n = 0;
    do {
      const std::uint64_t i = next++, r = reads_before(i);
      const bool reads = reads_before(i + 1) > r;
      // Writes run half the file behind the reads, as new versions go to other slots.
      move(reads, (reads ? r : i - r + requests / 2) % requests, place(w, n++));
      (reads ? read : written) += request;
    } while (elapsed() < seconds);
  });
  if (written > 0) file.sync();
  return {.bytes_read = read, .bytes_written = written, .seconds = elapsed()};
}

}  // namespace distzo2
