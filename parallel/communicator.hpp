// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace distzo2 {

/// Told when a rank begins to wait for others and when it goes on.
struct WaitObserver {
  virtual ~WaitObserver() = default;
  virtual void arrived() = 0;
  virtual void left() = 0;
};

/// What a gather took, apart.
struct GatherTimes {
  double waiting_s = 0.0;  // until the last rank had come
  double seconds = 0.0;    // from then on
};

/// A group of ranks that talk to each other only; owns its MPI communicator. What is not const or says so is called by
/// all its ranks in the same order. Errors of MPI throw Error (rank failed) with MPI's text.
class Communicator {
public:
  Communicator();  // this process alone, without MPI
  ~Communicator();
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;

  int rank() const;
  int size() const;
  bool is_first() const { return rank() == 0; }

  /// The same ranks; messages of one do not meet those of the other. By all ranks.
  Communicator duplicate() const;
  /// The ranks that give the same `color`, ordered by `key`. By all ranks.
  Communicator split(int color, int key) const;
  /// The ranks that share a memory with this one. By all ranks.
  Communicator split_by_node() const;

  /// Returns when all ranks have come here.
  void barrier();
  /// What rank `root` gives, on every rank.
  std::string broadcast(std::string text, int root = 0);
  std::uint64_t broadcast(std::uint64_t value, int root = 0);
  /// What each rank gives, in their order, on every rank.
  std::vector<std::string> gather(const std::string& text);
  std::vector<std::uint64_t> gather(std::uint64_t value);
  /// The same of rows of T whose lengths all know: counts[r] from rank r, one after another. All or none of the ranks
  /// ask for `times`.
  template <class T>
  std::vector<T> gather(std::span<const T> mine, std::span<const int> counts, GatherTimes* times = nullptr) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<int> bytes(counts.begin(), counts.end());
    std::size_t total = 0;
    for (int& n : bytes) {
      total += static_cast<std::size_t>(n);
      n *= static_cast<int>(sizeof(T));
    }
    std::vector<T> all(total);
    gather_bytes(std::as_bytes(mine), bytes, std::as_writable_bytes(std::span(all)), times);
    return all;
  }

  /// `observer`, if not null, is told of every wait in one of the calls above; it outlives this object.
  void observed_by(WaitObserver* observer) { observer_ = observer; }

  struct Mpi;  // parallel/mpi_handle.hpp
  explicit Communicator(std::unique_ptr<Mpi> mpi);
  const Mpi* mpi() const { return mpi_.get(); }  // null: this process alone

private:
  void gather_bytes(std::span<const std::byte> mine, std::span<const int> counts, std::span<std::byte> all,
                    GatherTimes* times);

  std::unique_ptr<Mpi> mpi_;
  WaitObserver* observer_ = nullptr;
};

}  // namespace distzo2
