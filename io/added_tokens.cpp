// SPDX-License-Identifier: BSD-3-Clause
#include "io/added_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/fail.hpp"
#include "io/unicode.hpp"

namespace distzo2 {

namespace {

// A byte of these takes some hundred in the tries, and tokens are words: of one, of all.
constexpr std::size_t max_added_token_bytes = 512;
constexpr std::size_t max_added_tokens_bytes = std::size_t{4} << 20;

}  // namespace

AddedToken added_token_of(const JsonObject& entry, std::optional<std::int32_t> id) {
  accept_only(entry, {"__type", "id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.content = entry.string("content");
  token.id = id ? *id : static_cast<std::int32_t>(entry.integer("id", 0, max_token_ids - 1));
  token.single_word = entry.boolean_or("single_word", false);
  token.lstrip = entry.boolean_or("lstrip", false);
  token.rstrip = entry.boolean_or("rstrip", false);
  token.special = entry.boolean_or("special", false);
  token.normalized = entry.boolean_or("normalized", !token.special);
  return token;
}

void AddedTokens::Trie::insert(std::string_view text, std::size_t token) {
  std::size_t at = 0;
  for (const char c : text) {
    const auto [child, is_new] = nodes_[at].children.try_emplace(c, nodes_.size());
    if (is_new && at == 0) {
      first_bytes_ += c;
    }
    at = child->second;
    if (is_new) {
      nodes_.emplace_back();
    }
  }
  if (at != 0 && !nodes_[at].token) {  // of equal texts the first counts
    nodes_[at].token = token;
  }
}

std::optional<AddedTokens::Trie::Match> AddedTokens::Trie::longest(std::string_view text, std::size_t begin) const {
  std::optional<Match> match;
  std::size_t node = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const auto child = nodes_[node].children.find(text[at]);
    if (child == nodes_[node].children.end()) {
      break;
    }
    node = child->second;
    if (nodes_[node].token) {
      match = {*nodes_[node].token, at + 1};
    }
  }
  return match;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Bpe& bpe, const Normalizer& normalizer,
                         const std::string& where)
    : tokens_(std::move(tokens)) {
  // Special tokens come first where two normalise to the same text.
  std::stable_partition(tokens_.begin(), tokens_.end(), [](const AddedToken& t) { return t.special; });
  std::size_t text_bytes = 0;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    AddedToken& token = tokens_[i];
    const auto refuse = [&](const std::string& problem) {
      fail(fmt::format("{}: the added token \"{}\" (id {}) {}", where, distzo2::shown(token.content), token.id,
                       problem));
    };
    if (token.content.empty()) {
      refuse("has no text");
    }
    if (token.content.size() > max_added_token_bytes) {
      refuse(fmt::format("has {} bytes; at most {} are accepted", token.content.size(), max_added_token_bytes));
    }
    if (token.id < 0 || token.id >= max_token_ids) {
      refuse(fmt::format("has an id that is not within 0 to {}", max_token_ids - 1));
    }
    if (const auto known = bpe.id(token.content); known && *known != token.id) {
      refuse(fmt::format("has the id {} in the vocabulary; the two must agree", *known));
    }
    if (const auto holder = bpe.token(token.id); holder && *holder != token.content) {
      refuse(fmt::format("has the id of \"{}\" in the vocabulary; ids must not stand twice", *holder));
    }
    if (!by_content_.emplace(token.content, i).second) {
      refuse("stands twice");
    }
    if (const auto [holder, is_new] = by_id_.emplace(token.id, i); !is_new) {
      refuse(fmt::format("has the id of \"{}\"; ids must not stand twice", tokens_[holder->second].content));
    }
    token.shown = token.normalized ? normalizer.apply(token.content) : token.content;
    text_bytes += token.shown.size();
    if (text_bytes > max_added_tokens_bytes) {
      refuse(fmt::format("is one too many: with those before it {} bytes, of which {} are accepted", text_bytes,
                         max_added_tokens_bytes));
    }
    (token.normalized ? after_ : before_).insert(token.shown, i);
  }
}

std::vector<Piece> AddedTokens::split(std::string_view text, const Normalizer& normalizer) const {
  std::vector<Piece> raw;
  cut({std::string(text), -1, true}, before_, raw);
  std::vector<Piece> pieces;
  for (Piece& piece : raw) {
    if (piece.token >= 0) {
      pieces.push_back(std::move(piece));
    } else {
      piece.text = normalizer.apply(std::move(piece.text));
      cut(piece, after_, pieces);
    }
  }
  return pieces;
}

void AddedTokens::cut(const Piece& piece, const Trie& trie, std::vector<Piece>& out) const {
  const std::string& text = piece.text;
  std::size_t done = 0;
  const auto keep_until = [&](std::size_t end) {
    if (done < end) {
      out.push_back({text.substr(done, end - done), -1, piece.first && done == 0});
    }
  };
  for (std::size_t at = trie.next_start(text, 0); at < text.size(); at = trie.next_start(text, at)) {
    const auto match = trie.longest(text, at);
    if (!match) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = match->end;
    at = match->end;
    const AddedToken& token = tokens_[match->token];
    if (token.single_word) {
      std::size_t before = begin;
      std::size_t after = end;
      if ((begin > 0 && is_word_character(previous_code_point(text, before))) ||
          (end < text.size() && is_word_character(next_code_point(text, after)))) {
        continue;
      }
    }
    if (token.lstrip) {
      for (std::size_t blank = begin; blank > done && is_white_space(previous_code_point(text, blank));) {
        begin = blank;
      }
    }
    if (token.rstrip) {
      for (std::size_t blank = end; blank < text.size() && is_white_space(next_code_point(text, blank));) {
        end = blank;
      }
    }
    keep_until(begin);
    out.push_back({text.substr(begin, end - begin), token.id, false});
    done = end;
  }
  keep_until(text.size());
}

std::optional<std::int32_t> AddedTokens::id(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? std::nullopt : std::optional(tokens_[found->second].id);
}

const AddedToken* AddedTokens::token(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace distzo2
