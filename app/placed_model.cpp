// SPDX-License-Identifier: BSD-3-Clause
#include "app/placed_model.hpp"

#include "app/memory_budget.hpp"
#include "core/error.hpp"
#include "core/kernels/gemm_kokkosblas.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <chrono>

namespace distzo2 {

namespace fs = std::filesystem;

/// A store whose writes wait for the records that they include.
class PlacedModel::TrajectoryFirst final : public BlockStorage {
public:
  explicit TrajectoryFirst(BlockFile& file) : file_(file) {}
  void read(int begin, int end, std::byte* image) override { file_.read(begin, end, image); }
  void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override {
    file_.read_part(chunk, offset, to);
  }
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override {
    if (trajectory_ != nullptr && version > synced_) {  // one thread writes
      trajectory_->sync();
      synced_ = version;
    }
    file_.write(begin, end, image, version);
  }
  bool holds(int chunk) const override { return file_.holds(chunk); }
  std::uint32_t version(int chunk) const override { return file_.version(chunk); }
  void sync() override { file_.sync(); }
  std::uint64_t bytes_read() const override { return file_.bytes_read(); }
  std::uint64_t bytes_written() const override { return file_.bytes_written(); }
  void write_after(TrajectoryWriter& trajectory) { trajectory_ = &trajectory; }

private:
  BlockFile& file_;
  TrajectoryWriter* trajectory_ = nullptr;
  std::uint32_t synced_ = 0;
};

namespace {

/// Says how far something long is, at most every ten seconds.
std::function<void(std::uint64_t, std::uint64_t)> told_by(Progress* progress, const char* what) {
  using Clock = std::chrono::steady_clock;
  if (progress == nullptr) return nullptr;
  return [=, last = Clock::now()](std::uint64_t done, std::uint64_t total) mutable {
    if (Clock::now() - last < std::chrono::seconds(10)) return;
    last = Clock::now();
    progress->say(fmt::format("{} {} of {}", what, short_bytes(static_cast<double>(done)),
                              short_bytes(static_cast<double>(total))));
  };
}

}  // namespace

PlacedModel::PlacedModel(const RunConfig& config, const ModelConfig& model, const MemoryPlan& plan, Compute compute,
                         const fs::path& store, std::uint32_t records, Progress* progress) {
  const WeightSource weights = weight_source(config);
  const UpdateRule rule = update_rule(config);
  if (plan.disk_bytes > 0) {
    fs::create_directories(store.parent_path());
    BlockFileOptions options;
    options.identity = weights.identity;
    options.spare_slots = plan.spare_slots;
    options.covered = records;
    options.progress = told_by(progress, "checking the store:");
    disk_ = std::make_unique<BlockFile>(store, plan.placement.chunks, rule.storage, options);
    ordered_ = std::make_unique<TrajectoryFirst>(*disk_);
    for (const Unit& unit : plan.placement.units)
      for (int c = unit.chunk_begin; unit.tier == Tier::disk && c < unit.chunk_end; ++c)
        advanced_ = advanced_ || (disk_->holds(c) && disk_->version(c) > 0);
  }
  engine_ = std::make_unique<Engine>(model, rule, compute, plan.placement, ordered_.get());
  import_weights(engine_->store(), weights, disk_.get(), told_by(progress, "importing the model:"));
  if (disk_) disk_->sync();
}

PlacedModel::~PlacedModel() = default;

void PlacedModel::write_after(TrajectoryWriter& trajectory) {
  if (ordered_) ordered_->write_after(trajectory);
}

void PlacedModel::sync() {
  if (engine_->store().pipeline() != nullptr) engine_->store().pipeline()->drain();
  if (disk_) disk_->sync();
}

void PlacedModel::remove_store() {
  engine_.reset();
  if (disk_) disk_->remove();
}

fs::path store_folder(const RunConfig& config, const RunFolder& run) {
  if (config.memory.scratch_folder.empty()) return run.path / "store";
  const std::string path = fs::weakly_canonical(run.path).string();
  return config.memory.scratch_folder /
         fmt::format("{}-{:016x}", run.path.filename().string(), XXH3_64bits(path.data(), path.size()));
}

TemporaryModel::TemporaryModel(const RunConfig& config, const ModelConfig& model, const LoadedData& data,
                               Compute compute) {
  const MemoryPlan plan =
      plan_run(config, model, tensor_table(model), data, host_concurrency(), machine_memory_sources());
  if (plan.disk_bytes > 0 && config.memory.scratch_folder.empty())
    throw Error(ExitCode::usage, fmt::format("memory/scratch folder: {} of the model do not fit memory/host budget and "
                                             "need a folder on a disk; name one",
                                             short_bytes(static_cast<double>(plan.disk_bytes))));
  const fs::path store = config.memory.scratch_folder / fmt::format("distzo2-{}", ::getpid());
  placed_.emplace(config, model, plan, compute, store, 0, nullptr);
}

TemporaryModel::~TemporaryModel() {
  try {
    placed_->remove_store();
  } catch (const std::exception&) {  // what is left behind is in the way of nobody
  }
}

}  // namespace distzo2
