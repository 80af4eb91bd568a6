// SPDX-License-Identifier: BSD-3-Clause
#include "io/normalizer.hpp"

#include <fmt/format.h>

#include "io/fail.hpp"
#include "io/tokenizer_parts.hpp"
#include "io/unicode.hpp"

namespace distzo2 {

std::size_t most_replaced_bytes(std::size_t bytes) {
  return 4096 + 16 * bytes;
}

std::string replace_all(const std::string& text, const Regex& pattern, const std::string& content) {
  const std::vector<Span> matches = pattern.find_all(text);
  if (matches.empty()) {
    return text;
  }
  std::string out;
  std::size_t done = 0;
  for (const Span& match : matches) {
    out.append(text, done, match.begin - done);
    out += content;
    done = match.end;
    if (out.size() > most_replaced_bytes(text.size())) {
      pattern.refuse(fmt::format("its replacement makes more than {} bytes of a text of {}; no more are accepted",
                                 most_replaced_bytes(text.size()), text.size()));
    }
  }
  return out.append(text, done);
}

Regex regex_of(const JsonObject& object) {
  const PatternSource source = pattern_of(object);
  const std::string where = fmt::format("{}: key \"{}\"", object.file(), object.path_of("pattern"));
  return source.is_regex ? Regex(source.text, where) : Regex::literal(source.text, where);
}

Normalizer::Normalizer(const JsonObject& file) {
  if (!file.has("normalizer")) {
    return;
  }
  where_ = file.file() + ": key \"normalizer\"";
  for (const JsonObject& step : flatten_sequence(file.object("normalizer"), "normalizers")) {
    const std::string type = step.string("type");
    if (type == "NFC") {
      accept_only(step, {"type"});
      steps_.emplace_back(Nfc{});
    } else if (type == "Prepend") {
      accept_only(step, {"type", "prepend"});
      steps_.emplace_back(Prepend{step.string("prepend")});
    } else if (type == "Replace") {
      accept_only(step, {"type", "pattern", "content"});
      steps_.emplace_back(Replace{regex_of(step), step.string("content")});
    } else {
      step.refuse("type", "this normalizer is not supported; accepted are NFC, Prepend, Replace and Sequence");
    }
  }
}

std::string Normalizer::apply(std::string text) const {
  const std::size_t most = most_replaced_bytes(text.size());
  for (const auto& step : steps_) {
    if (std::holds_alternative<Nfc>(step)) {
      text = normalize_nfc(text);
    } else if (const auto* prepend = std::get_if<Prepend>(&step)) {
      text = text.empty() ? text : prepend->text + text;
    } else {
      const auto& replace = std::get<Replace>(step);
      text = replace_all(text, replace.pattern, replace.content);
    }
    if (text.size() > most) {
      fail(fmt::format("{}: its steps make {} bytes of a text; {} are accepted of its length", where_, text.size(),
                       most));
    }
  }
  return text;
}

}  // namespace distzo2
