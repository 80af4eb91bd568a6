// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/json_file.hpp"

namespace distzo2 {

/// Lets a map keyed by std::string be searched with a string_view.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// Byte-pair encoding of one piece of text: a vocabulary and ranked merges. Any number of threads may encode at once.
class Bpe {
public:
  /// From the "model" of a tokenizer.json. Throws Error(file) naming the key where an id is out of range or stands
  /// twice, a merge names a token that the vocabulary lacks, no merge is there, or a setting is not supported.
  static Bpe from_json(const JsonObject& model);
  /// From GPT-2's pair of files.
  static Bpe from_files(const std::filesystem::path& vocab_json, const std::filesystem::path& merges_txt);

  /// Appends the ids of `piece`. Characters that the vocabulary lacks become bytes (byte_fallback), the unknown token,
  /// or nothing where there is neither.
  void encode(const std::string& piece, std::vector<std::int32_t>& ids) const;

  std::optional<std::int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(std::int32_t id) const;
  std::int32_t end_id() const { return static_cast<std::int32_t>(tokens_.size()); }  // largest id + 1

private:
  struct Merge {
    std::uint32_t rank = 0;
    std::int32_t id = 0;  // of the product
  };
  struct PairHash {
    std::size_t operator()(std::uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15ULL) >> 20U; }
  };
  struct Cache {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<std::int32_t>> ids;
  };

  Bpe() : cache_(std::make_unique<Cache>()) {}
  void set_vocabulary(const JsonObject& vocabulary);
  /// `at` says where the merge stands (file, key or line).
  void add_merge(std::string_view left, std::string_view right, const std::string& at);
  const Merge* find_merge(std::int32_t left, std::int32_t right) const;
  void encode_uncached(const std::string& piece, std::vector<std::int32_t>& ids) const;
  void add_characters(const std::string& piece, std::vector<std::int32_t>& symbols) const;
  std::int32_t unknown_id(const std::string& character) const;

  std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // by id, null where no token has it; points to keys of ids_
  std::unordered_map<std::uint64_t, Merge, PairHash> merges_;
  std::uint32_t merges_read_ = 0;
  std::array<std::int32_t, 256> byte_ids_{};  // of <0x00> to <0xFF>, -1 where absent
  std::string where_;                         // for messages
  std::string unknown_;                       // empty where there is none
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  std::unique_ptr<Cache> cache_;
};

}  // namespace distzo2
