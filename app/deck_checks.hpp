// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "io/deck.hpp"

namespace distzo2 {

/// What keys mean to each other. Throws Error (usage) with the place of the first that does not fit.
void check_deck(const RunConfig& config, const Deck& deck);

}  // namespace distzo2
