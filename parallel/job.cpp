// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/job.hpp"

#include <algorithm>
#include <utility>

namespace distzo2 {

Job::Job(const std::optional<Launcher>& launcher, std::function<void(const std::string&)> say)
    : session_(launcher), rank_(session_.world().rank()) {
  Communicator& ranks = world();
  const RankPlace mine = ranks.size() == 1 ? RankPlace{} : this_place();
  const std::vector<std::string> hosts = ranks.gather(mine.host);
  const std::vector<std::string> cores = ranks.gather(mine.cores);
  const std::vector<std::string> nodes = ranks.gather(mine.nodes);
  for (std::size_t r = 0; r < hosts.size(); ++r) places_.push_back({hosts[r], cores[r], nodes[r]});
  Communicator node = ranks.split_by_node();
  ranks_of_node_ = node.size();
  ranks_on_these_cores_ = static_cast<int>(std::ranges::count(node.gather(mine.cores), mine.cores));
  heartbeat_.emplace(ranks.duplicate(), hosts, std::move(say), abort_job);
  ranks.observed_by(&*heartbeat_);
}

}  // namespace distzo2
