// SPDX-License-Identifier: BSD-3-Clause
#include "io/tokenizer.hpp"

#include "io/regex.hpp"
#include "io/unicode.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_text_bytes = 1024;
constexpr const char* text_name = "text";
constexpr const char* own_text = " Hello, w\xC3\xB6rld 42!  <s>\n\xE2\x96\x81 \xF0\x9F\x99\x82";

/// Encodes the text in the folder, or one of our own where the input gave none.
bool use_tokenizer(const fs::path& folder, std::string_view text) {
  return accepted([&] {
    const Tokenizer tokenizer = Tokenizer::from_folder(folder);
    tokenizer.digest();
    accepted([&] { tokenizer.check_ids(100); });
    const std::vector<std::int32_t> ids = tokenizer.encode(text.substr(0, most_text_bytes));
    if (tokenizer.encode(text.substr(0, most_text_bytes)) != ids) found("a text has two encodings");
    const std::string decoded = tokenizer.decode(ids);
    if (invalid_utf8_at(decoded) != std::string::npos) found("what is decoded is no UTF-8");
    tokenizer.decode(std::vector<std::int32_t>{-1, 0, 1, 255, 1 << 20});
  });
}

std::string_view text_part(std::string_view input, std::size_t part) {
  const std::vector<std::string_view> parts = parts_of(input, part + 1);
  return parts.size() > part ? parts[part] : std::string_view(own_text);
}

/// tokenizer.json, tokenizer_config.json, a text.
bool read_json(std::string_view input) {
  static const fs::path folder = fuzz_folder("tokenizer_json");
  write_parts(folder, {"tokenizer.json", "tokenizer_config.json", text_name}, input);
  return use_tokenizer(folder, text_part(input, 2));
}

/// vocab.json, merges.txt, tokenizer_config.json, special_tokens_map.json, a text.
bool read_files(std::string_view input) {
  static const fs::path folder = fuzz_folder("tokenizer_files");
  write_parts(folder, {"vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json", text_name},
              input);
  return use_tokenizer(folder, text_part(input, 4));
}

/// A pattern as a tokenizer's file has one, a text.
bool read_pattern(std::string_view input) {
  const std::string_view pattern = parts_of(input, 2)[0], text = text_part(input, 1).substr(0, most_text_bytes);
  if (invalid_utf8_at(pattern) != std::string::npos || invalid_utf8_at(text) != std::string::npos) return false;
  return accepted([&] {
    const Regex regex(pattern, "tokenizer.json: key \"pattern\"");
    std::size_t done = 0;
    for (const Span& span : regex.find_all(text)) {
      if (span.begin < done || span.end < span.begin || span.end > text.size()) found("matches overlap");
      for (const std::size_t at : {span.begin, span.end})
        if (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U)
          found("a match begins or ends within a character");
      done = span.end;
    }
  });
}

const RegisteredTarget json_target("tokenizer_json", read_json);
const RegisteredTarget files_target("tokenizer_files", read_files);
const RegisteredTarget pattern_target("regex", read_pattern);

}  // namespace
}  // namespace distzo2
