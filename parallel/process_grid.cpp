// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/process_grid.hpp"

namespace distzo2 {

ProcessGrid::ProcessGrid(const Communicator& world, const Layout& layout) : layout_(layout) {
  check_layout(layout, world.size());
  place_ = place_of(layout, world.rank());
  share_ = distzo2::share(layout, world.rank());
  pertp_ = world.split(place_.ddp, place_.pertp);
  ddp_ = world.split(place_.pertp, place_.ddp);
  node_ = world.split_by_node();
}

}  // namespace distzo2
