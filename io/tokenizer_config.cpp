// SPDX-License-Identifier: BSD-3-Clause
#include "io/tokenizer_config.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "io/tokenizer_parts.hpp"

namespace distzo2 {

namespace {

using IdOf = std::function<std::optional<std::int32_t>(std::string_view)>;

constexpr const char* special_keys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};

/// A special token stands in these files as a text or as an object with its flags.
AddedToken special_token_of(const JsonObject& config, const std::string& key, const IdOf& id_of) {
  const nlohmann::json& value = config.value(key);
  AddedToken token;
  if (value.is_string()) {
    token.content = value.get<std::string>();
    token.normalized = false;
  } else {
    token = added_token_of(config.object(key), 0);
  }
  const auto id = id_of(token.content);
  if (!id) {
    config.refuse(key, "this special token is not in the vocabulary");
  }
  token.id = *id;
  token.special = true;
  return token;
}

/// Adds the tokens that `config` names and `tokens` does not hold yet.
void add_special_tokens(const JsonObject& config, const IdOf& id_of, std::vector<AddedToken>& tokens) {
  std::set<std::string> known;
  for (const AddedToken& token : tokens) {
    known.insert(token.content);
  }
  if (config.has("added_tokens_decoder")) {
    const JsonObject table = config.object("added_tokens_decoder");
    for (const auto& entry : table.raw().items()) {
      const std::string& key = entry.key();
      std::int32_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc{} || end != key.data() + key.size() || id < 0 || id >= max_token_ids) {
        table.refuse(key, fmt::format("its name must be a token id from 0 to {}", max_token_ids - 1));
      }
      const AddedToken token = added_token_of(table.object(key), id);
      if (known.insert(token.content).second) {
        tokens.push_back(token);
      }
    }
  }
  for (const char* key : special_keys) {
    if (config.has(key)) {
      AddedToken token = special_token_of(config, key, id_of);
      if (known.insert(token.content).second) {
        tokens.push_back(std::move(token));
      }
    }
  }
}

std::string bos_text(const JsonObject& config) {
  if (!config.has("bos_token")) {
    return "";
  }
  return config.value("bos_token").is_string() ? config.string("bos_token")
                                               : config.object("bos_token").string("content");
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder, const IdOf& id_of) {
  TokenizerConfig result;
  const std::filesystem::path config_path = folder / "tokenizer_config.json";
  result.file = config_path.string();
  std::error_code none;
  if (std::filesystem::exists(config_path, none)) {
    const nlohmann::json json = read_json_file(config_path);
    const JsonObject config(json, config_path.string());
    result.tokenizer_class = config.string_or("tokenizer_class", "");
    if (config.has("add_bos_token")) {
      result.add_bos_token = config.boolean("add_bos_token");
    }
    result.bos_token = bos_text(config);
    result.add_prefix_space = config.boolean_or("add_prefix_space", false);
    if (id_of) {
      add_special_tokens(config, id_of, result.special_tokens);
    }
  }
  const std::filesystem::path map_path = folder / "special_tokens_map.json";
  if (std::filesystem::exists(map_path, none)) {
    const nlohmann::json json = read_json_file(map_path);
    const JsonObject map(json, map_path.string());
    if (result.bos_token.empty()) {
      result.bos_token = bos_text(map);
    }
    if (id_of) {
      add_special_tokens(map, id_of, result.special_tokens);
    }
  }
  return result;
}

std::optional<std::int32_t> leading_token(const JsonObject& file) {
  if (!file.has("post_processor")) {
    return std::nullopt;
  }
  std::optional<std::int32_t> leading;
  for (const JsonObject& step : flatten_sequence(file.object("post_processor"), "processors")) {
    const std::string type = step.string("type");
    if (type == "ByteLevel") {
      continue;  // it only moves offsets
    }
    if (type != "TemplateProcessing") {
      step.refuse("type",
                  "this post-processor is not supported; accepted are TemplateProcessing, ByteLevel and Sequence");
    }
    const nlohmann::json& single = step.array("single");
    for (std::size_t i = 0; i < single.size(); ++i) {
      const JsonObject item(single[i], step.file(), fmt::format("{}[{}]", step.path_of("single"), i));
      if (item.present("Sequence")) {
        break;
      }
      const JsonObject token = step.object("special_tokens").object(item.object("SpecialToken").string("id"));
      const nlohmann::json& ids = token.array("ids");
      if (leading || ids.size() != 1) {
        step.refuse("single", "more than one token in front of the text; at most one is accepted");
      }
      const nlohmann::json named = {{"id", ids[0]}};
      leading = static_cast<std::int32_t>(
          JsonObject(named, step.file(), token.path_of("ids")).integer("id", 0, max_token_ids - 1));
    }
  }
  return leading;
}

}  // namespace distzo2
