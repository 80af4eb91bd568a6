// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// Text to token ids and back, by byte-pair encoding, as a Hugging Face folder describes it. Any number of threads may
/// use one tokenizer at once.
class Tokenizer {
public:
  /// From tokenizer.json, else from GPT-2's pair vocab.json and merges.txt; tokenizer_config.json and
  /// special_tokens_map.json beside them say what those leave open. Throws Error(file) naming the file, the key and
  /// what would be accepted for anything that would change ids and is not supported.
  static Tokenizer from_folder(const std::filesystem::path& folder);

  Tokenizer(Tokenizer&& other) noexcept;
  Tokenizer& operator=(Tokenizer&& other) noexcept;
  ~Tokenizer();

  /// Without the tokens that a post-processor would add. Throws Error(file) naming the first byte of `utf8` that is not
  /// UTF-8.
  std::vector<std::int32_t> encode(std::string_view utf8) const;
  /// Special tokens included; ids that no token has are left out, ill-formed bytes become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids) const;

  /// Throws Error (file) where the vocabulary has ids that a model of so many embedding rows lacks. Tokens that were
  /// added to it may: a padding token often does, and only a text that holds one is wrong.
  void check_ids(std::int64_t rows) const;

  /// The token that the folder puts in front of a text (OPT, Llama), or nothing (Qwen, SmolLM2).
  std::optional<std::int32_t> bos() const;
  /// Equal for equal tokenizers: XXH3-64 of the files' contents and the leading token.
  std::uint64_t digest() const;

private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);
  static Parts from_tokenizer_json(const std::filesystem::path& folder);
  static Parts from_vocabulary_files(const std::filesystem::path& folder);

  std::unique_ptr<const Parts> parts_;
};

}  // namespace distzo2
