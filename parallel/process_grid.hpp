// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/layout.hpp"
#include "parallel/communicator.hpp"

namespace distzo2 {

/// World = PertP x DDP, and the nodes that its ranks are on.
class ProcessGrid {
public:
  /// By all ranks of `world`. Throws Error (usage) that states the arithmetic where the layout does not fit its size.
  ProcessGrid(const Communicator& world, const Layout& layout);

  const Layout& layout() const { return layout_; }
  Place place() const { return place_; }
  Share share() const { return share_; }    // of this rank
  Communicator& pertp() { return pertp_; }  // the ranks that share this one's sequences
  Communicator& ddp() { return ddp_; }      // the ranks that share this one's evaluations
  Communicator& node() { return node_; }    // the ranks of this one's node

private:
  Layout layout_;
  Place place_;
  Share share_;
  Communicator pertp_, ddp_, node_;
};

}  // namespace distzo2
