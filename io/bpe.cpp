// SPDX-License-Identifier: BSD-3-Clause
#include "io/bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "io/fail.hpp"
#include "io/tokenizer_parts.hpp"
#include "io/unicode.hpp"

namespace distzo2 {

namespace {

constexpr std::size_t max_cached_pieces = 1U << 16U;
constexpr std::size_t max_cached_bytes = 256;  // of one piece: longer ones hardly come back

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32U) | static_cast<std::uint32_t>(right);
}

/// "a b" at its only blank.
std::pair<std::string_view, std::string_view> at_blank(std::string_view text, const std::string& at) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || text.find(' ', blank + 1) != std::string_view::npos) {
    fail(fmt::format("{} is \"{}\"; two tokens with one blank between them were expected", at, text));
  }
  return {text.substr(0, blank), text.substr(blank + 1)};
}

}  // namespace

Bpe Bpe::from_json(const JsonObject& model) {
  if (model.string_or("type", "BPE") != "BPE") {
    model.refuse("type", "this model is not supported; accepted is BPE");
  }
  accept_only(model, {"type", "vocab", "merges", "dropout", "unk_token", "continuing_subword_prefix",
                      "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"});
  if (model.has("dropout") && model.number("dropout") != 0.0) {
    model.refuse("dropout", "token ids must not be random; accepted are null and 0");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.string_or(affix, "").empty()) {
      model.refuse(affix, "this is not supported; accepted are null and \"\"");
    }
  }
  Bpe bpe;
  bpe.where_ = model.file();
  bpe.unknown_ = model.string_or("unk_token", "");
  bpe.fuse_unknown_ = model.boolean_or("fuse_unk", false);
  bpe.byte_fallback_ = model.boolean_or("byte_fallback", false);
  bpe.ignore_merges_ = model.boolean_or("ignore_merges", false);
  bpe.set_vocabulary(model.object("vocab"));

  const auto& merges = model.array("merges");
  if (merges.empty()) {
    model.refuse("merges", "at least one merge was expected");
  }
  bpe.merges_.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& merge = merges[i];
    const std::string at = fmt::format("{}: key \"{}[{}]\"", model.file(), model.path_of("merges"), i);
    if (merge.is_string()) {
      const auto [left, right] = at_blank(merge.get_ref<const std::string&>(), at);
      bpe.add_merge(left, right, at);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      bpe.add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), at);
    } else {
      fail(fmt::format("{}: \"a b\" or [\"a\", \"b\"] was expected", at));
    }
  }
  return bpe;
}

Bpe Bpe::from_files(const std::filesystem::path& vocab_json, const std::filesystem::path& merges_txt) {
  Bpe bpe;
  bpe.where_ = vocab_json.string();
  const nlohmann::json vocabulary = read_json_file(vocab_json);
  bpe.set_vocabulary(JsonObject(vocabulary, vocab_json.string()));

  const std::string text = read_text_file(merges_txt, JsonLimits{}.max_bytes);
  if (const std::size_t bad = invalid_utf8_at(text); bad != std::string::npos) {
    fail(fmt::format("{}: byte {} is not UTF-8", merges_txt.string(), bad));
  }
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.starts_with("#version")) {
      continue;
    }
    const std::string at = fmt::format("{}: line {}", merges_txt.string(), line_number);
    const auto [left, right] = at_blank(line, at);
    bpe.add_merge(left, right, at);
  }
  if (bpe.merges_.empty()) {
    fail(fmt::format("{}: no merges; a line \"a b\" for each was expected", merges_txt.string()));
  }
  return bpe;
}

void Bpe::set_vocabulary(const JsonObject& vocabulary) {
  const auto& entries = vocabulary.raw();
  if (entries.empty() || entries.size() > static_cast<std::size_t>(max_token_ids)) {
    fail(fmt::format("{}: a vocabulary of {} tokens; 1 to {} are accepted", vocabulary.file(), entries.size(),
                     max_token_ids));
  }
  ids_.reserve(entries.size());
  for (const auto& entry : entries.items()) {
    const std::int64_t id = vocabulary.integer(entry.key(), 0, max_token_ids - 1);
    if (std::cmp_greater_equal(id, tokens_.size())) {
      tokens_.resize(static_cast<std::size_t>(id) + 1, nullptr);
    }
    const auto added = ids_.emplace(entry.key(), static_cast<std::int32_t>(id)).first;
    const std::string*& slot = tokens_[static_cast<std::size_t>(id)];
    if (slot != nullptr) {
      vocabulary.refuse(entry.key(), fmt::format("\"{}\" has this id too", *slot));
    }
    slot = &added->first;
  }
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = id(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
}

void Bpe::add_merge(std::string_view left, std::string_view right, const std::string& at) {
  const std::string product = std::string(left).append(right);
  std::array<std::int32_t, 3> found{};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string_view name = i == 0 ? left : i == 1 ? right : product;
    const auto known = id(name);
    if (!known) {
      fail(fmt::format("{} joins \"{}\" and \"{}\", but the vocabulary has no token \"{}\"", at, left, right, name));
    }
    found[i] = *known;
  }
  merges_[pair_key(found[0], found[1])] = {merges_read_++, found[2]};
}

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::optional<std::int32_t> Bpe::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> Bpe::token(std::int32_t id) const {
  if (id < 0 || id >= end_id() || tokens_[static_cast<std::size_t>(id)] == nullptr) {
    return std::nullopt;
  }
  return *tokens_[static_cast<std::size_t>(id)];
}

void Bpe::encode(const std::string& piece, std::vector<std::int32_t>& ids) const {
  if (ignore_merges_) {
    if (const auto whole = id(piece)) {
      ids.push_back(*whole);
      return;
    }
  }
  const bool cacheable = piece.size() <= max_cached_bytes;
  if (cacheable) {
    const std::scoped_lock lock(cache_->mutex);
    if (const auto found = cache_->ids.find(piece); found != cache_->ids.end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      return;
    }
  }
  std::vector<std::int32_t> own;
  encode_uncached(piece, own);
  ids.insert(ids.end(), own.begin(), own.end());
  if (cacheable) {
    const std::scoped_lock lock(cache_->mutex);
    if (cache_->ids.size() < max_cached_pieces) {
      cache_->ids.emplace(piece, std::move(own));
    }
  }
}

std::int32_t Bpe::unknown_id(const std::string& character) const {
  const auto unknown = id(unknown_);
  if (!unknown) {
    fail(fmt::format("{}: the unknown token \"{}\" is needed for \"{}\", but the vocabulary lacks it", where_, unknown_,
                     character));
  }
  return *unknown;
}

void Bpe::add_characters(const std::string& piece, std::vector<std::int32_t>& symbols) const {
  std::int32_t pending = -1;  // an unknown token that may still take in the next unknown character
  const auto flush = [&] {
    if (pending >= 0) {
      symbols.push_back(pending);
      pending = -1;
    }
  };
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t begin = at;
    next_code_point(piece, at);
    const std::string_view character(piece.data() + begin, at - begin);
    if (const auto known = id(character)) {
      flush();
      symbols.push_back(*known);
      continue;
    }
    const auto byte_id = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (byte_fallback_ && std::ranges::all_of(character, [&](char c) { return byte_id(c) >= 0; })) {
      // A pending unknown token stays behind these bytes: the order that models with this scheme were trained in.
      std::ranges::transform(character, std::back_inserter(symbols), byte_id);
    } else if (!unknown_.empty()) {
      if (!fuse_unknown_) {
        flush();
      }
      pending = unknown_id(std::string(character));
    }
  }
  flush();
}

void Bpe::encode_uncached(const std::string& piece, std::vector<std::int32_t>& ids) const {
  add_characters(piece, ids);
  // The pair of the lowest rank is merged first, of equal ones the leftmost. An entry is stale where its pair no
  // longer gives its product; removed symbols are -1.
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;
    std::int32_t product;
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  const std::size_t n = ids.size();
  std::vector<std::size_t> next(n);
  std::vector<std::size_t> previous(n);
  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::size_t left, std::size_t right) {
    if (const Merge* merge = find_merge(ids[left], ids[right])) {
      queue.push({merge->rank, left, merge->id});
    }
  };
  for (std::size_t i = 0; i < n; ++i) {
    next[i] = i + 1;
    previous[i] = i == 0 ? n : i - 1;  // n stands for none, on both sides
    if (i + 1 < n) {
      consider(i, i + 1);
    }
  }
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const std::size_t left = top.at;
    if (ids[left] < 0 || next[left] == n) {
      continue;
    }
    const std::size_t right = next[left];
    const Merge* merge = find_merge(ids[left], ids[right]);
    if (merge == nullptr || merge->id != top.product) {
      continue;
    }
    ids[left] = top.product;
    ids[right] = -1;
    next[left] = next[right];
    if (next[left] != n) {
      previous[next[left]] = left;
      consider(left, next[left]);
    }
    if (previous[left] != n) {
      consider(previous[left], left);
    }
  }
  std::erase(ids, -1);
}

}  // namespace distzo2
