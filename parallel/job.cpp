// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/job.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace distzo2 {
namespace {

/// What a launcher needs to pass on stdout before it gets something of stderr: they come to it apart.
constexpr auto time_to_pass_on = std::chrono::milliseconds(50);

}  // namespace

Job::Job(const std::optional<Launcher>& launcher, std::function<void(const std::string&)> say)
    : session_(launcher), rank_(session_.world().rank()) {
  Communicator& ranks = world();
  const RankPlace mine = ranks.size() == 1 ? RankPlace{} : this_place();
  const std::vector<std::string> hosts = ranks.gather(mine.host);
  const std::vector<std::string> cores = ranks.gather(mine.cores);
  const std::vector<std::string> nodes = ranks.gather(mine.nodes);
  for (std::size_t r = 0; r < hosts.size(); ++r) places_.push_back({hosts[r], cores[r], nodes[r], {}, {}, {}});
  Communicator node = ranks.split_by_node();
  ranks_of_node_ = node.size();
  rank_of_node_ = node.rank();
  ranks_on_these_cores_ = static_cast<int>(std::ranges::count(node.gather(mine.cores), mine.cores));
  const auto say_last = [this, say = std::move(say)](const std::string& message) {
    {
      const std::lock_guard lock(before_message_mutex_);
      if (before_message_) {
        before_message_();
        std::this_thread::sleep_for(time_to_pass_on);
      }
    }
    say(message);
  };
  heartbeat_.emplace(ranks.duplicate(), hosts, say_last, abort_job);
  ranks.observed_by(&*heartbeat_);
}

void Job::share_device(const std::string& device, const std::string& id) {
  const std::vector<std::string> devices = world().gather(device), ids = world().gather(id);
  for (std::size_t r = 0; r < places_.size(); ++r) {
    places_[r].device = devices[r];
    places_[r].device_id = ids[r];
  }
}

void Job::share_links(const std::string& links) {
  const std::vector<std::string> all = world().gather(links);
  for (std::size_t r = 0; r < places_.size(); ++r) places_[r].links = all[r];
}

void Job::set_before_message(std::function<void()> call) {
  const std::lock_guard lock(before_message_mutex_);
  before_message_ = std::move(call);
}

}  // namespace distzo2
