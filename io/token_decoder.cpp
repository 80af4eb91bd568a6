// SPDX-License-Identifier: BSD-3-Clause
#include "io/token_decoder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "io/fail.hpp"
#include "io/normalizer.hpp"
#include "io/tokenizer_parts.hpp"
#include "io/unicode.hpp"

namespace distzo2 {

namespace {

/// The byte that a token "<0x0A>" stands for.
std::optional<char> byte_of_token(std::string_view token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return std::nullopt;
  }
  const char* end = token.data() + 5;
  if (std::from_chars(token.data() + 3, end, byte, 16).ptr != end) {
    return std::nullopt;
  }
  return static_cast<char>(byte);
}

/// The bytes behind the stand-in characters of a byte-level token, or the token itself where others are in it.
std::string bytes_of(const std::string& token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const int byte = byte_of_character(next_code_point(token, at));
    if (byte < 0) {
      return token;
    }
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::size_t bytes_in(const std::vector<std::string>& tokens) {
  return std::transform_reduce(tokens.begin(), tokens.end(), std::size_t{0}, std::plus<>(),
                               [](const std::string& token) { return token.size(); });
}

}  // namespace

TokenDecoder::TokenDecoder(const JsonObject& file) {
  if (!file.has("decoder")) {
    return;
  }
  where_ = file.file() + ": key \"decoder\"";
  for (const JsonObject& object : flatten_sequence(file.object("decoder"), "decoders")) {
    steps_.push_back(step_of(object));
  }
}

TokenDecoder TokenDecoder::byte_level() {
  TokenDecoder decoder;
  decoder.steps_.emplace_back(ByteLevel{});
  return decoder;
}

TokenDecoder::Step TokenDecoder::step_of(const JsonObject& object) {
  const std::string type = object.string("type");
  if (type == "ByteLevel") {
    accept_only(object, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return ByteLevel{};
  }
  if (type == "Replace") {
    accept_only(object, {"type", "pattern", "content"});
    return Replace{regex_of(object), object.string("content")};
  }
  if (type == "ByteFallback") {
    accept_only(object, {"type"});
    return ByteFallback{};
  }
  if (type == "Fuse") {
    accept_only(object, {"type"});
    return Fuse{};
  }
  if (type == "Strip") {
    accept_only(object, {"type", "content", "start", "stop"});
    constexpr std::int64_t most = 1 << 20;
    Strip step{object.string("content"), object.integer("start", 0, most), object.integer("stop", 0, most)};
    std::size_t end = 0;
    if (step.content.empty() || (next_code_point(step.content, end), end) != step.content.size()) {
      object.refuse("content", "one character was expected");
    }
    return step;
  }
  if (type == "Metaspace") {
    return metaspace_of(object);
  }
  object.refuse("type",
                "this decoder is not supported; accepted are ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace "
                "and Sequence");
}

std::string TokenDecoder::apply(std::vector<std::string> tokens) const {
  const std::size_t most = most_replaced_bytes(bytes_in(tokens));
  for (const Step& step : steps_) {
    tokens = std::visit([&](const auto& s) { return apply(s, std::move(tokens)); }, step);
    if (bytes_in(tokens) > most) {
      fail(fmt::format("{}: its steps make {} bytes of a text; {} are accepted of its length", where_, bytes_in(tokens),
                       most));
    }
  }
  return fmt::format("{}", fmt::join(tokens, steps_.empty() ? " " : ""));
}

TokenDecoder::Tokens TokenDecoder::apply(const ByteLevel& /*step*/, Tokens tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    bytes += bytes_of(token);
  }
  return {to_valid_utf8(bytes)};
}

TokenDecoder::Tokens TokenDecoder::apply(const Replace& step, Tokens tokens) {
  for (std::string& token : tokens) {
    token = replace_all(token, step.pattern, step.content);
  }
  return tokens;
}

TokenDecoder::Tokens TokenDecoder::apply(const ByteFallback& /*step*/, Tokens tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (invalid_utf8_at(bytes) == std::string_view::npos) {
      out.push_back(bytes);
    } else {  // one replacement a byte, as these tokenizers have always done
      out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_of_token(token)) {
      bytes += *byte;
      continue;
    }
    if (!bytes.empty()) {
      flush();
    }
    out.push_back(std::move(token));
  }
  if (!bytes.empty()) {
    flush();
  }
  return out;
}

TokenDecoder::Tokens TokenDecoder::apply(const Fuse& /*step*/, Tokens tokens) {
  return {fmt::format("{}", fmt::join(tokens, ""))};
}

TokenDecoder::Tokens TokenDecoder::apply(const Strip& step, Tokens tokens) {
  for (std::string& token : tokens) {
    std::string_view rest = token;
    for (std::int64_t i = 0; i < step.start && rest.starts_with(step.content); ++i) {
      rest.remove_prefix(step.content.size());
    }
    for (std::int64_t i = 0; i < step.stop && rest.ends_with(step.content); ++i) {
      rest.remove_suffix(step.content.size());
    }
    token = std::string(rest);
  }
  return tokens;
}

TokenDecoder::Tokens TokenDecoder::apply(const Metaspace& step, Tokens tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool drops = i == 0 && step.prepend != PrependScheme::never;
    std::string out;
    for (std::size_t at = 0; at < tokens[i].size();) {
      if (tokens[i].compare(at, step.mark.size(), step.mark) == 0) {
        out += drops ? "" : " ";
        at += step.mark.size();
      } else {
        out += tokens[i][at++];
      }
    }
    tokens[i] = std::move(out);
  }
  return tokens;
}

}  // namespace distzo2
