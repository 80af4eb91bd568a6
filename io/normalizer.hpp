// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "io/json_file.hpp"
#include "io/regex.hpp"

namespace distzo2 {

/// The normalisers of a tokenizer.json, in order: NFC, Prepend, Replace, and Sequences of them.
class Normalizer {
public:
  Normalizer() = default;
  /// From the "normalizer" of `file`, which may be absent or null. Throws Error(file) naming what is not supported.
  explicit Normalizer(const JsonObject& file);

  std::string apply(std::string text) const;  // valid UTF-8 in and out

private:
  struct Nfc {};
  struct Prepend {
    std::string text;
  };
  struct Replace {
    Regex pattern;
    std::string content;
  };

  std::vector<std::variant<Nfc, Prepend, Replace>> steps_;
  std::string where_;  // for messages
};

/// What replacements may make of a text of so many bytes: of the steps in a file each can double it.
std::size_t most_replaced_bytes(std::size_t bytes);

/// `text` with each match of `pattern` replaced by `content`.
std::string replace_all(const std::string& text, const Regex& pattern, const std::string& content);

/// The pattern of a Replace or Split object.
Regex regex_of(const JsonObject& object);

}  // namespace distzo2
