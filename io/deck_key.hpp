// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Teuchos_ParameterEntry.hpp>
#include <Teuchos_ParameterEntryValidator.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// What a key's value is, and in which C++ type its entry of the ParameterList holds it.
enum class KeyKind {
  path,      // std::string, absolute; empty where the key is left out
  task,      // std::string: a path where it holds a '/' or ends in .json, else the name of a task
  word,      // std::string, one of `words`
  boolean,   // bool
  integer,   // long long
  seed,      // unsigned long long
  number,    // double
  duration,  // double, seconds
  interval,  // std::string: "10" (steps) or "5 s"
  bytes      // std::string: "6 GiB"
};

/// What is accepted for a key. Where a kind other than `word` has words too, they may stand for the value and the entry
/// holds a std::string: the word, or the number as text; the first word means that nothing was chosen.
struct KeyRule {
  KeyKind kind = KeyKind::word;
  std::vector<std::string> words = {};
  double min = 0.0;
  double max = 0.0;
  bool above_min = false;  // min itself is not accepted
  bool required = false;
  std::string unit = {};     // of a number or integer, for the documentation
  std::string example = {};  // what a deck to start from says where the default is to leave the key out
};

/// The rule as a Teuchos validator: it turns the deck's texts into entries, and checks any entry of its key.
class DeckKey final : public Teuchos::ParameterEntryValidator {
public:
  explicit DeckKey(KeyRule rule) : rule_(std::move(rule)) {}

  const KeyRule& rule() const { return rule_; }
  bool is_path() const { return rule_.kind == KeyKind::path || rule_.kind == KeyKind::task; }

  /// The text of a deck as an entry of the key's type, or nothing and the reason in `problem`.
  std::optional<Teuchos::ParameterEntry> convert(const std::string& text, bool quoted, std::string& problem) const;
  /// What is wrong with an entry, empty where nothing is.
  std::string problem_of(const Teuchos::ParameterEntry& entry) const;
  /// "an integer from 1 to 100, or auto"
  std::string accepted() const;
  /// The entry as a deck would have it, unquoted; it converts back to the same entry.
  std::string text_of(const Teuchos::ParameterEntry& entry) const;

  const std::string getXMLTypeName() const override { return "distzo2 deck key"; }
  void printDoc(const std::string& doc, std::ostream& out) const override;
  ValidStringsList validStringValues() const override;
  void validate(const Teuchos::ParameterEntry& entry, const std::string& name,
                const std::string& sublist) const override;

private:
  std::string bounds() const;
  std::string quantity_problem(const std::string& text) const;
  KeyRule rule_;
};

}  // namespace distzo2
