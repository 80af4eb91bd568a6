// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Teuchos_ParameterList.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/deck_key.hpp"

namespace distzo2 {

/// The one list of valid keys: two levels, each key with its default, its documentation and a DeckKey as validator.
const Teuchos::ParameterList& valid_deck();

/// The validator of "zo/steps"; the key must be in the valid list.
const DeckKey& deck_key(const std::string& path);

struct Deck {
  std::filesystem::path file;
  Teuchos::ParameterList values;              // every valid key, defaults filled in
  std::map<std::string, std::string> places;  // "zo/steps" -> "deck.yaml:12", of the keys that were given
};

/// Reads a deck, applies the options `--set` in order (the last one of a key counts), converts and checks every key and
/// fills in the defaults. Relative paths are taken from the deck's folder, those of `--set` from the current one; `~/`
/// and `${VAR}` are expanded in paths. Throws Error(usage), or Error(file) where the deck cannot be read.
Deck read_deck(const std::filesystem::path& file, const std::vector<std::string>& sets);

/// Error(usage): "deck.yaml:12: zo/steps: PROBLEM"; the deck alone stands in front where the key was not given.
[[noreturn]] void refuse_key(const Deck& deck, const std::string& path, const std::string& problem);

/// The values as a YAML deck that read_deck takes to the same values; keys that were left out stay so.
std::string deck_yaml(const Teuchos::ParameterList& values);

/// Markdown: every key with its type, default, what is accepted and its meaning (docs/deck.md).
std::string deck_reference();

/// A deck with every key at its default and its meaning as a comment: what a user starts from.
std::string starter_deck();

}  // namespace distzo2
