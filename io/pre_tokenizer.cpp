// SPDX-License-Identifier: BSD-3-Clause
#include "io/pre_tokenizer.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "io/normalizer.hpp"
#include "io/unicode.hpp"

namespace distzo2 {

namespace {

/// GPT-2's split, which ByteLevel implies: contractions, letters, numbers, other marks, blanks.
constexpr const char* gpt2_pattern = R"('(?:[sdmt]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::string in_byte_characters(const std::string& text) {
  const auto& characters = byte_characters();
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    out += characters[static_cast<unsigned char>(c)];
  }
  return out;
}

/// The characters of `text` for which `wanted` holds, each a match.
template <class Predicate>
std::vector<Span> find_characters(const std::string& text, Predicate wanted) {
  std::vector<Span> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (wanted(next_code_point(text, at))) {
      found.push_back({begin, at});
    }
  }
  return found;
}

}  // namespace

Metaspace metaspace_of(const JsonObject& object) {
  accept_only(object, {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
  Metaspace step;
  step.mark = object.string("replacement");
  std::size_t end = 0;
  if (step.mark.empty() || (next_code_point(step.mark, end), end) != step.mark.size()) {
    object.refuse("replacement", "one character was expected");
  }
  const std::map<std::string, PrependScheme> schemes{
      {"always", PrependScheme::always}, {"first", PrependScheme::first}, {"never", PrependScheme::never}};
  const auto scheme = schemes.find(object.string_or("prepend_scheme", "always"));
  if (scheme == schemes.end()) {
    object.refuse("prepend_scheme", "accepted are always, first and never");
  }
  step.prepend = scheme->second;
  if (!object.boolean_or("add_prefix_space", true)) {
    if (object.has("prepend_scheme") && step.prepend != PrependScheme::never) {
      object.refuse("prepend_scheme", "\"add_prefix_space\": false goes with \"never\" only");
    }
    step.prepend = PrependScheme::never;
  }
  step.split = object.boolean_or("split", true);
  return step;
}

PreTokenizer::PreTokenizer(const JsonObject& file) {
  if (!file.has("pre_tokenizer")) {
    return;
  }
  for (const JsonObject& object : flatten_sequence(file.object("pre_tokenizer"), "pretokenizers")) {
    steps_.push_back(step_of(object));
    const auto is_byte_level = [](const Step& step) { return std::holds_alternative<ByteLevel>(step); };
    if (std::ranges::count_if(steps_, is_byte_level) > 1) {
      object.refuse("type", "a second one would take the stand-ins of bytes for text; accepted is one");
    }
  }
}

PreTokenizer::Step PreTokenizer::step_of(const JsonObject& object) {
  const std::string type = object.string("type");
  if (type == "ByteLevel") {
    accept_only(object, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    ByteLevel step;
    step.add_prefix_space = object.boolean("add_prefix_space");
    if (object.boolean_or("use_regex", true)) {
      step.pattern.emplace(gpt2_pattern, object.file());
    }
    return step;
  }
  if (type == "Split") {
    accept_only(object, {"type", "pattern", "behavior", "invert"});
    const std::map<std::string, Behavior> behaviors{{"Isolated", Behavior::isolated},
                                                    {"Removed", Behavior::removed},
                                                    {"MergedWithPrevious", Behavior::merged_with_previous},
                                                    {"MergedWithNext", Behavior::merged_with_next},
                                                    {"Contiguous", Behavior::contiguous}};
    const auto behavior = behaviors.find(object.string("behavior"));
    if (behavior == behaviors.end()) {
      object.refuse("behavior", "accepted are Isolated, Removed, MergedWithPrevious, MergedWithNext and Contiguous");
    }
    return Split{regex_of(object), behavior->second, object.boolean_or("invert", false)};
  }
  if (type == "Digits") {
    accept_only(object, {"type", "individual_digits"});
    return Digits{object.boolean_or("individual_digits", false)};
  }
  if (type == "Metaspace") {
    return metaspace_of(object);
  }
  object.refuse("type",
                "this pre-tokenizer is not supported; accepted are ByteLevel, Split, Digits, Metaspace and Sequence");
}

std::vector<Piece> PreTokenizer::apply(std::vector<Piece> pieces) const {
  for (const Step& step : steps_) {
    std::vector<Piece> out;
    for (Piece& piece : pieces) {
      if (piece.token >= 0) {
        out.push_back(std::move(piece));
      } else {
        std::visit([&](const auto& s) { apply(s, std::move(piece), out); }, step);
      }
    }
    pieces = std::move(out);
  }
  return pieces;
}

void PreTokenizer::split(const Piece& piece, const std::vector<Span>& matches, Behavior behavior, bool invert,
                         std::vector<Piece>& out) {
  // 1. The whole text as alternating runs between and of matches.
  struct Run {
    Span span;
    bool match = false;
  };
  std::vector<Run> runs;
  std::size_t done = 0;
  for (const Span& match : matches) {
    if (done != match.begin) {
      runs.push_back({{done, match.begin}, invert});
    }
    runs.push_back({match, !invert});
    done = match.end;
  }
  if (done != piece.text.size()) {
    runs.push_back({{done, piece.text.size()}, invert});
  }
  // 2. Runs joined or dropped as the behaviour says. Only a match that follows no match joins its neighbour.
  std::vector<Run> joined;
  const bool backwards = behavior == Behavior::merged_with_next;
  if (backwards) {
    std::reverse(runs.begin(), runs.end());
  }
  bool previous_match = false;
  for (const Run& run : runs) {
    const bool joins = behavior == Behavior::contiguous                          ? run.match == previous_match
                       : backwards || behavior == Behavior::merged_with_previous ? run.match && !previous_match
                                                                                 : false;
    previous_match = run.match;
    if (joins && !joined.empty()) {
      (backwards ? joined.back().span.begin : joined.back().span.end) = backwards ? run.span.begin : run.span.end;
    } else if (behavior != Behavior::removed || !run.match) {
      joined.push_back(run);
    }
  }
  if (backwards) {
    std::reverse(joined.begin(), joined.end());
  }
  // 3. What is left, as pieces.
  for (const Run& run : joined) {
    if (run.span.begin != run.span.end) {
      out.push_back(
          {piece.text.substr(run.span.begin, run.span.end - run.span.begin), -1, piece.first && run.span.begin == 0});
    }
  }
}

void PreTokenizer::apply(const ByteLevel& step, Piece piece, std::vector<Piece>& out) {
  if (step.add_prefix_space && !piece.text.starts_with(' ')) {
    piece.text.insert(0, 1, ' ');
  }
  const std::size_t before = out.size();
  if (step.pattern) {
    split(piece, step.pattern->find_all(piece.text), Behavior::isolated, false, out);
  } else {
    out.push_back(std::move(piece));
  }
  for (std::size_t i = before; i < out.size(); ++i) {
    out[i].text = in_byte_characters(out[i].text);
  }
}

void PreTokenizer::apply(const Split& step, Piece piece, std::vector<Piece>& out) {
  split(piece, step.pattern.find_all(piece.text), step.behavior, step.invert, out);
}

void PreTokenizer::apply(const Digits& step, Piece piece, std::vector<Piece>& out) {
  split(piece, find_characters(piece.text, is_number), step.individual ? Behavior::isolated : Behavior::contiguous,
        false, out);
}

void PreTokenizer::apply(const Metaspace& step, Piece piece, std::vector<Piece>& out) {
  std::string marked;
  for (const char c : piece.text) {
    if (c == ' ') {
      marked += step.mark;
    } else {
      marked += c;
    }
  }
  const bool wanted = step.prepend == PrependScheme::always || (step.prepend == PrependScheme::first && piece.first);
  piece.text = wanted && !marked.starts_with(step.mark) ? step.mark + marked : std::move(marked);
  if (step.split) {
    std::size_t at = 0;
    const char32_t mark = next_code_point(step.mark, at);
    split(piece, find_characters(piece.text, [mark](char32_t c) { return c == mark; }), Behavior::merged_with_next,
          false, out);
  } else {
    out.push_back(std::move(piece));
  }
}

}  // namespace distzo2
