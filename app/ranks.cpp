// SPDX-License-Identifier: BSD-3-Clause
#include "app/ranks.hpp"

#include "app/build_info.hpp"
#include "core/kokkos_scope.hpp"
#include "io/trajectory_format.hpp"
#include "parallel/agreement.hpp"

#include <fmt/format.h>

namespace distzo2 {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

std::string hex(std::uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

std::string encoded(const Trajectory& found) {
  TrajectoryHeader header = found.header;
  header.decay_mask = header.decay_mask.value_or(0);  // old files have none; rank 0 has checked what there is
  return encode_trajectory(header, found.steps, found.digests);
}

}  // namespace

void throw_on_all(Communicator& world, const std::optional<Error>& error) {
  const auto code =
      static_cast<ExitCode>(world.broadcast(std::uint64_t{error ? static_cast<unsigned>(error->code()) : 0U}));
  if (code == ExitCode::done) return;
  throw Error(code, world.broadcast(error ? std::string(error->what()) : std::string()));
}

void share_folder(Communicator& world, OpenRun& run) {
  const std::string folder = world.broadcast(run.folder ? run.folder->path.string() : std::string());
  if (!world.is_first() && !folder.empty()) run.folder = RunFolder{folder};
}

void share_run(Communicator& world, OpenRun& run) {
  share_folder(world, run);
  const std::string found = world.broadcast(world.is_first() && run.found ? encoded(*run.found) : std::string());
  if (world.is_first()) return;
  if (!found.empty()) run.found = decode_trajectory(found, "the trajectory that rank 0 sent");
}

void check_same_deck(Job& job, const RunConfig& config) {
  Values values{{"program", build_git_hash()}};
  for (KeyValue& k : keys_of_all_ranks(config)) values.emplace_back(std::move(k.key), std::move(k.value));
  check_same(job.world(), job.place().host, values);
}

void check_same_data(Job& job, const LoadedData& data) {
  Values values;
  for (const auto& [name, set] :
       {std::pair{"data/train", &data.train}, {"data/dev", &data.dev}, {"data/test", &data.test}})
    values.emplace_back(std::string("digest of ") + name, *set ? hex((*set)->digest) : "none");
  check_same(job.world(), job.place().host, values);
}

void check_same_model(Job& job, std::uint64_t theta0_digest) {
  check_same(job.world(), job.place().host, {{"digest of the model's parameters", hex(theta0_digest)}});
}

std::uint64_t check_same_theta(Job& job, ParameterStore& store, std::uint32_t step) {
  const std::uint64_t digest = store.shared_digest();
  const auto name_of = [&](std::size_t block) {
    return store.table().tensors[static_cast<std::size_t>(store.table().blocks[block].tensor_begin)].name;
  };
  check_replicas(
      job.world(), job.place().host, step, digest, [&] { return store.block_digests(); }, name_of);
  return digest;
}

std::vector<std::string> rank_lines(Job& job) {
  const std::vector<std::uint64_t> threads = job.world().gather(static_cast<std::uint64_t>(host_concurrency()));
  std::vector<std::string> lines;
  if (threads.size() == 1) return lines;
  for (std::size_t r = 0; r < threads.size(); ++r) {
    const RankPlace& place = job.places()[r];
    lines.push_back(fmt::format("rank {:<4}{}, {}{}cores {}, NUMA node {}, {} thread{}{}{}", r, place.host,
                                place.device, place.device.empty() ? "" : ", ", place.cores, place.nodes, threads[r],
                                threads[r] == 1 ? "" : "s", place.links.empty() ? "" : "; ", place.links));
  }
  return lines;
}

}  // namespace distzo2
