// SPDX-License-Identifier: BSD-3-Clause
#include "io/deck.hpp"
#include "tests/fuzz/target.hpp"

namespace distzo2 {
namespace {

/// A deck that is taken is one that its own text gives again.
bool read_deck_named(const char* name, std::string_view input) {
  static const std::filesystem::path folder = fuzz_folder("deck");
  write_bytes(folder / name, input);
  return accepted([&] {
    const Deck deck = read_deck(folder / name, {});
    const std::string text = deck_yaml(deck.values);
    write_bytes(folder / "again.yaml", text);
    std::string again;
    if (!accepted([&] { again = deck_yaml(read_deck(folder / "again.yaml", {}).values); }))
      found("a resolved deck is refused:\n" + text);
    if (again != text) found("a resolved deck is read as another:\n" + text + "\nand\n" + again);
  });
}

bool read_yaml(std::string_view input) {
  return read_deck_named("deck.yaml", input);
}
bool read_xml(std::string_view input) {
  return read_deck_named("deck.xml", input);
}

const RegisteredTarget yaml_deck("deck_yaml", read_yaml);
const RegisteredTarget xml_deck("deck_xml", read_xml);

}  // namespace
}  // namespace distzo2
