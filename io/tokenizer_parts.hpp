// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_file.hpp"

namespace distzo2 {

/// No tokenizer known has a quarter of this many entries; it bounds every table that an id from a file indexes.
constexpr std::int64_t max_token_ids = std::int64_t{1} << 20;

/// A part of a text on its way to token ids.
struct Piece {
  std::string text;         // normalised as far as the steps went
  std::int32_t token = -1;  // an added token's id: the piece is done
  bool first = false;       // it starts where the whole text starts
};

/// Error(file) naming a key of `object` that is not among `keys`: a setting that is ignored would change the ids.
void accept_only(const JsonObject& object, std::initializer_list<std::string_view> keys);

/// The objects of a "Sequence", those within it included: `object` itself where its type is another. `list` is the key
/// that holds the members.
std::vector<JsonObject> flatten_sequence(const JsonObject& object, const std::string& list);

/// A `{"String": ...}` or `{"Regex": ...}`, taken apart.
struct PatternSource {
  std::string text;
  bool is_regex = false;
};
PatternSource pattern_of(const JsonObject& object);

}  // namespace distzo2
