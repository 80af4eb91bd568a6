// SPDX-License-Identifier: BSD-3-Clause
#include "io/tokenizer.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <utility>

#include "io/added_tokens.hpp"
#include "io/bpe.hpp"
#include "io/fail.hpp"
#include "io/normalizer.hpp"
#include "io/pre_tokenizer.hpp"
#include "io/token_decoder.hpp"
#include "io/tokenizer_config.hpp"
#include "io/tokenizer_parts.hpp"
#include "io/unicode.hpp"

namespace distzo2 {

struct Tokenizer::Parts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  TokenDecoder decoder;
  AddedTokens added;
  std::optional<std::int32_t> bos;
  std::uint64_t digest = 0;
  std::string vocabulary = {};  // where it stands, for messages

  std::optional<std::int32_t> id_of(std::string_view token) const {
    const auto id = added.id(token);
    return id ? id : bpe.id(token);
  }

  /// `processor` is the post-processor's leading token; an explicit add_bos_token goes before it.
  void set_bos(const TokenizerConfig& config, std::optional<std::int32_t> processor, const std::string& file) {
    if (!config.add_bos_token) {
      if (processor && !added.token(*processor) && !bpe.token(*processor)) {
        fail(fmt::format("{}: the post-processor adds the id {}, which no token has", file, *processor));
      }
      bos = processor;
    } else if (*config.add_bos_token) {
      bos = id_of(config.bos_token);
      if (!bos) {
        fail(
            fmt::format("{}: key \"add_bos_token\" is true, but the \"bos_token\" \"{}\" is "
                        "not in the vocabulary",
                        config.file, config.bos_token));
      }
    }
  }

  void set_digest(std::string_view content) {
    const std::int32_t leading = bos.value_or(-1);
    digest = XXH3_64bits_withSeed(content.data(), content.size(), static_cast<std::uint32_t>(leading));
  }
};

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&& other) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&& other) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer::Parts Tokenizer::from_tokenizer_json(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer.json";
  const nlohmann::json json = read_json_file(path);
  const JsonObject file(json, path.string());
  accept_only(file, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  Parts parts{
      Normalizer(file), PreTokenizer(file), Bpe::from_json(file.object("model")), TokenDecoder(file), {}, {}, 0};
  std::vector<AddedToken> added;
  if (file.has("added_tokens")) {
    const nlohmann::json& list = file.array("added_tokens");
    for (std::size_t i = 0; i < list.size(); ++i) {
      added.push_back(added_token_of(JsonObject(list[i], file.file(), fmt::format("added_tokens[{}]", i))));
    }
  }
  parts.added = AddedTokens(std::move(added), parts.bpe, parts.normalizer, path.string());
  parts.set_bos(read_tokenizer_config(folder, nullptr), leading_token(file), path.string());
  parts.set_digest(json.dump());
  parts.vocabulary = path.string() + ": key \"model.vocab\"";
  return parts;
}

Tokenizer::Parts Tokenizer::from_vocabulary_files(const std::filesystem::path& folder) {
  const std::filesystem::path vocab = folder / "vocab.json";
  const std::filesystem::path merges = folder / "merges.txt";
  Bpe bpe = Bpe::from_files(vocab, merges);
  const TokenizerConfig config =
      read_tokenizer_config(folder, [&bpe](std::string_view token) { return bpe.id(token); });
  const std::string& name = config.tokenizer_class;
  if (!name.empty() && name != "GPT2Tokenizer" && name != "GPT2TokenizerFast") {
    fail(
        fmt::format("{}: key \"tokenizer_class\" is \"{}\"; from vocab.json and merges.txt only GPT2Tokenizer "
                    "(GPT-2, OPT) can be read: save the tokenizer as tokenizer.json",
                    config.file, name));
  }
  // What GPT2Tokenizer means, said in tokenizer.json's words.
  const nlohmann::json implied = {
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", config.add_prefix_space}}}};
  Parts parts{{}, PreTokenizer(JsonObject(implied, config.file)), std::move(bpe), TokenDecoder::byte_level(), {}, {},
              0};
  parts.added = AddedTokens(config.special_tokens, parts.bpe, parts.normalizer, config.file);
  parts.set_bos(config, std::nullopt, config.file);
  std::string content = read_text_file(vocab, JsonLimits{}.max_bytes) + read_text_file(merges, JsonLimits{}.max_bytes);
  for (const AddedToken& token : parts.added.all()) {
    content += fmt::format("{}\n{} {} {} {} {}\n", token.content, token.id, token.single_word, token.lstrip,
                           token.rstrip, token.normalized);
  }
  parts.set_digest(content + implied.dump());
  parts.vocabulary = vocab.string();
  return parts;
}

Tokenizer Tokenizer::from_folder(const std::filesystem::path& folder) {
  std::error_code none;
  const bool has_json = std::filesystem::exists(folder / "tokenizer.json", none);
  if (!has_json && !std::filesystem::exists(folder / "vocab.json", none)) {
    fail(
        fmt::format("{}: no tokenizer; a file tokenizer.json, or vocab.json and merges.txt, was "
                    "expected",
                    folder.string()));
  }
  return Tokenizer(
      std::make_unique<const Parts>(has_json ? from_tokenizer_json(folder) : from_vocabulary_files(folder)));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8) const {
  if (const std::size_t bad = invalid_utf8_at(utf8); bad != std::string_view::npos) {
    fail(fmt::format("a text of {} bytes is not UTF-8 at byte {} (0x{:02X})", utf8.size(), bad,
                     static_cast<unsigned char>(utf8[bad])));
  }
  std::vector<std::int32_t> ids;
  for (const Piece& piece : parts_->pre_tokenizer.apply(parts_->added.split(utf8, parts_->normalizer))) {
    if (piece.token >= 0) {
      ids.push_back(piece.token);
    } else {
      parts_->bpe.encode(piece.text, ids);
    }
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) {
    if (const AddedToken* added = parts_->added.token(id)) {
      tokens.push_back(added->shown);
    } else if (const auto token = parts_->bpe.token(id)) {
      tokens.emplace_back(*token);
    }
  }
  return parts_->decoder.apply(std::move(tokens));
}

void Tokenizer::check_ids(std::int64_t rows) const {
  for (std::int64_t id = rows; id < parts_->bpe.end_id(); ++id)
    if (const auto token = parts_->bpe.token(static_cast<std::int32_t>(id)); token && !parts_->added.id(*token))
      fail(
          fmt::format("{}: token id {} (\"{}\") is outside the model's {} embedding rows; accepted: ids from 0 to "
                      "{}; the tokenizer and the model do not belong together",
                      parts_->vocabulary, id, *token, rows, rows - 1));
}

std::optional<std::int32_t> Tokenizer::bos() const {
  return parts_->bos;
}

std::uint64_t Tokenizer::digest() const {
  return parts_->digest;
}

}  // namespace distzo2
