// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "io/deck.hpp"

#include <fmt/format.h>

namespace distzo2 {

ExitCode deck_docs_command(const DeckDocsOptions& options) {
  fmt::print("{}", options.starter ? starter_deck() : deck_reference());
  return ExitCode::done;
}

}  // namespace distzo2
