// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/communicator.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "parallel/mpi_handle.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

namespace distzo2 {
namespace {

/// A wait is a matter of microseconds, or else of a rank that computes, or writes a model: then for how long a rank
/// sleeps between two looks.
constexpr int looks_before_sleep = 200;
constexpr auto shortest_sleep = std::chrono::microseconds(10);
constexpr auto longest_sleep = std::chrono::microseconds(500);

class Waiting {
public:
  explicit Waiting(WaitObserver* observer) : observer_(observer) {
    if (observer_ != nullptr) observer_->arrived();
  }
  ~Waiting() {
    if (observer_ != nullptr) observer_->left();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

private:
  WaitObserver* observer_;
};

std::unique_ptr<Communicator::Mpi> taken(MPI_Comm comm) {
  return std::make_unique<Communicator::Mpi>(comm);
}

int int_size(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(ExitCode::internal, "a message of " + std::to_string(bytes) + " bytes is more than MPI takes at once");
  return static_cast<int>(bytes);
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(ExitCode::rank_failed, std::string(call) + ": " + std::string(text.data(), text.data() + length));
}

void wait_for(MPI_Request& request, const char* call) {
  auto sleep = shortest_sleep;
  for (int looks = 0;; ++looks) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call);
    if (done != 0) return;
    if (looks < looks_before_sleep) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(longest_sleep, 2 * sleep);
  }
}

Communicator::Mpi::Mpi(MPI_Comm its) : comm(its) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
}

Communicator::Mpi::~Mpi() {
  MPI_Comm_free(&comm);
}

Communicator::Communicator() = default;
Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&& other) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept = default;
Communicator::Communicator(std::unique_ptr<Mpi> mpi) : mpi_(std::move(mpi)) {}

int Communicator::rank() const {
  return mpi_ ? mpi_->rank : 0;
}
int Communicator::size() const {
  return mpi_ ? mpi_->size : 1;
}

Communicator Communicator::duplicate() const {
  if (!mpi_) return {};
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(mpi_->comm, &comm), "MPI_Comm_dup");
  return Communicator(taken(comm));
}

Communicator Communicator::split(int color, int key) const {
  if (!mpi_) return {};
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(mpi_->comm, color, key, &comm), "MPI_Comm_split");
  return Communicator(taken(comm));
}

Communicator Communicator::split_by_node() const {
  if (!mpi_) return {};
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(mpi_->comm, MPI_COMM_TYPE_SHARED, mpi_->rank, MPI_INFO_NULL, &comm),
            "MPI_Comm_split_type");
  return Communicator(taken(comm));
}

void Communicator::barrier() {
  if (size() == 1) return;
  const Waiting waiting(observer_);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(mpi_->comm, &request), "MPI_Ibarrier");
  wait_for(request, "MPI_Ibarrier");
}

std::uint64_t Communicator::broadcast(std::uint64_t value, int root) {
  return gather(value)[static_cast<std::size_t>(root)];
}

std::string Communicator::broadcast(std::string text, int root) {
  if (size() == 1) return text;
  text.resize(broadcast(static_cast<std::uint64_t>(text.size()), root));
  const Waiting waiting(observer_);
  constexpr std::size_t most = std::size_t{1} << 30;  // bytes at a time
  for (std::size_t at = 0; at < text.size(); at += most) {
    MPI_Request request = MPI_REQUEST_NULL;
    const std::size_t bytes = std::min(most, text.size() - at);
    check_mpi(MPI_Ibcast(text.data() + at, int_size(bytes), MPI_BYTE, root, mpi_->comm, &request), "MPI_Ibcast");
    wait_for(request, "MPI_Ibcast");
  }
  return text;
}

std::vector<std::uint64_t> Communicator::gather(std::uint64_t value) {
  const std::vector<int> one(static_cast<std::size_t>(size()), 1);
  return gather(std::span<const std::uint64_t>(&value, 1), one);
}

std::vector<std::string> Communicator::gather(const std::string& text) {
  std::vector<int> counts;
  for (const std::uint64_t bytes : gather(static_cast<std::uint64_t>(text.size()))) counts.push_back(int_size(bytes));
  const std::vector<char> all = gather(std::span<const char>(text), counts);
  std::vector<std::string> texts;
  auto at = all.begin();
  for (const int count : counts) {
    texts.emplace_back(at, at + count);
    at += count;
  }
  return texts;
}

void Communicator::gather_bytes(std::span<const std::byte> mine, std::span<const int> counts, std::span<std::byte> all,
                                GatherTimes* times) {
  if (std::ssize(counts) != size() || std::ssize(mine) != counts[static_cast<std::size_t>(rank())])
    throw Error(ExitCode::internal, "a gather of counts that are not those of its ranks");
  if (size() == 1) {
    if (!mine.empty()) std::memcpy(all.data(), mine.data(), mine.size());
    return;
  }
  std::vector<int> begins;
  std::size_t begin = 0;
  for (const int count : counts) {
    begins.push_back(int_size(begin));
    begin += static_cast<std::size_t>(count);
  }
  const Waiting waiting(observer_);
  const auto started = Clock::now();
  // The barrier tells when all are there. Both are under way at once, so that the values travel in the same wait.
  MPI_Request barrier = MPI_REQUEST_NULL, gather = MPI_REQUEST_NULL;
  if (times != nullptr) check_mpi(MPI_Ibarrier(mpi_->comm, &barrier), "MPI_Ibarrier");
  check_mpi(MPI_Iallgatherv(mine.data(), int_size(mine.size()), MPI_BYTE, all.data(), counts.data(), begins.data(),
                            MPI_BYTE, mpi_->comm, &gather),
            "MPI_Iallgatherv");
  if (times != nullptr) {
    wait_for(barrier, "MPI_Ibarrier");
    times->waiting_s = seconds_since(started);
  }
  wait_for(gather, "MPI_Iallgatherv");
  if (times != nullptr) times->seconds = seconds_since(started) - times->waiting_s;
}

}  // namespace distzo2
