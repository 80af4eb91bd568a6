// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/nccl_gather.hpp"

#include "core/error.hpp"
#include "core/signals_blocked.hpp"
#include "parallel/communicator.hpp"

#include <dlfcn.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

namespace distzo2 {
namespace {

// The library is loaded as the program runs, not with it: a machine without it has all but this way of gathering.
constexpr const char* nccl_file = "libnccl.so.2";

struct NcclLibrary {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRank) init_rank = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  std::string problem;  // empty: all of these are there
  int version = 0;
};

template <class Function>
void find_in(void* handle, const char* name, Function& function, std::string& problem) {
  void* const symbol = ::dlsym(handle, name);
  if (symbol == nullptr && problem.empty()) problem = std::string(nccl_file) + " has no " + name;
  std::memcpy(&function, &symbol, sizeof symbol);
}

NcclLibrary load_nccl() {
  NcclLibrary l;
  void* const handle = ::dlopen(nccl_file, RTLD_NOW | RTLD_LOCAL);  // never unloaded: it has threads
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    l.problem = why != nullptr ? why : nccl_file;
    return l;
  }
  find_in(handle, "ncclGetVersion", l.get_version, l.problem);
  find_in(handle, "ncclGetUniqueId", l.get_unique_id, l.problem);
  find_in(handle, "ncclCommInitRank", l.init_rank, l.problem);
  find_in(handle, "ncclCommDestroy", l.destroy, l.problem);
  find_in(handle, "ncclCommAbort", l.abort, l.problem);
  find_in(handle, "ncclCommGetAsyncError", l.get_async_error, l.problem);
  find_in(handle, "ncclAllGather", l.all_gather, l.problem);
  find_in(handle, "ncclGetErrorString", l.error_string, l.problem);
  find_in(handle, "ncclGetLastError", l.last_error, l.problem);
  if (l.problem.empty() && l.get_version(&l.version) != ncclSuccess) l.problem = "ncclGetVersion failed";
  return l;
}

const NcclLibrary& nccl() {
  static const NcclLibrary loaded = load_nccl();
  return loaded;
}

std::string nccl_text(int version) {  // since 2.9: major * 10000 + minor * 100 + patch
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// "host gpu07, rank 3: NCCL: ncclAllGather: unhandled cuda error: ..."
std::string nccl_message(const std::string& name, const char* call, ncclResult_t code) {
  std::string message = name + ": NCCL: " + call + ": " + nccl().error_string(code);
  const char* const last = nccl().last_error(nullptr);
  if (last != nullptr && *last != '\0') message += std::string(": ") + last;
  return message;
}

class NcclGather final : public BlockGather {
public:
  NcclGather(const std::string& id, int rank, int ranks, void* lane, std::string name)
      : rank_(rank), lane_(static_cast<cudaStream_t>(lane)), name_(std::move(name)) {
    if (!nccl().problem.empty()) throw Error(ExitCode::internal, name_ + ": " + nccl().problem);
    ncclUniqueId unique{};
    if (id.size() != sizeof unique) throw Error(ExitCode::internal, name_ + ": this is no id of NCCL");
    std::memcpy(&unique, id.data(), sizeof unique);
    check_call(nccl().init_rank(&communicator_, ranks, unique, rank), "ncclCommInitRank");
    const SignalsBlocked blocked;
    watch_ = std::thread([this] { watch(); });
  }

  ~NcclGather() override {
    stop_watch();
    if (!aborted_) nccl().destroy(communicator_);
  }

  void gather(std::byte* image, std::size_t part) override {
    check();
    check_call(
        nccl().all_gather(image + static_cast<std::size_t>(rank_) * part, image, part, ncclInt8, communicator_, lane_),
        "ncclAllGather");
  }

  void check() override {
    if (!failed_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    throw Error(ExitCode::rank_failed, problem_);
  }

  void end_waits() override {
    stop_watch();
    abort();
  }

private:
  void check_call(ncclResult_t code, const char* call) const {
    if (code != ncclSuccess && code != ncclInProgress)
      throw Error(ExitCode::rank_failed, nccl_message(name_, call, code));
  }

  /// What is queued is given up, so that the device goes on and who waits for it finds the error.
  void abort() {
    if (!aborted_.exchange(true)) nccl().abort(communicator_);
  }

  void watch() {
    constexpr auto period = std::chrono::milliseconds(100);
    std::unique_lock lock(mutex_);
    while (!stopped_.wait_for(lock, period, [&] { return stop_; })) {
      ncclResult_t state = ncclSuccess;
      ncclResult_t code = nccl().get_async_error(communicator_, &state);
      if (code == ncclSuccess) code = state;
      if (code == ncclSuccess || code == ncclInProgress) continue;
      problem_ = nccl_message(name_, "a gather under way", code);
      failed_.store(true, std::memory_order_release);
      lock.unlock();
      return abort();
    }
  }

  void stop_watch() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    if (watch_.joinable()) watch_.join();
  }

  int rank_;
  cudaStream_t lane_;
  std::string name_;
  ncclComm_t communicator_ = nullptr;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::string problem_;
  std::atomic<bool> failed_{false}, aborted_{false};
  std::thread watch_;
};

}  // namespace

std::string nccl_version() {
  return nccl().problem.empty() ? nccl_text(nccl().version) : std::string();
}

std::string describe_nccl() {
  const std::string built = nccl_text(NCCL_VERSION_CODE), found = nccl_version();
  return found.empty() ? "built for " + built + ", but " + nccl().problem : found;
}

std::string make_nccl_id() {
  if (!nccl().problem.empty()) throw Error(ExitCode::internal, "NCCL: " + nccl().problem);
  ncclUniqueId id{};
  if (const ncclResult_t code = nccl().get_unique_id(&id); code != ncclSuccess)
    throw Error(ExitCode::rank_failed, nccl_message("this rank", "ncclGetUniqueId", code));
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

std::unique_ptr<BlockGather> make_nccl_gather(const std::string& id, int rank, int ranks, void* lane,
                                              const std::string& name) {
  return std::make_unique<NcclGather>(id, rank, ranks, lane, name);
}

std::unique_ptr<BlockGather> make_nccl_gather(Communicator& node, void* lane, const std::string& name) {
  const std::string id = node.broadcast(node.is_first() ? make_nccl_id() : std::string());
  return make_nccl_gather(id, node.rank(), node.size(), lane, name);
}

}  // namespace distzo2
