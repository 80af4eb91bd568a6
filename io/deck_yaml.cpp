// SPDX-License-Identifier: BSD-3-Clause
// YAML by yaml-cpp's events: they say which scalars were quoted and where each stands, and depth is refused as it
// grows.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/deck_tree.hpp"

namespace distzo2 {

namespace {

class TreeBuilder final : public YAML::EventHandler {
public:
  explicit TreeBuilder(const std::string& source) : source_(source) {}

  DeckNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    refuse(mark, fmt::format("anchor &{}: decks take no anchors; write the value where it is meant", name));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    refuse(mark, "decks take no aliases (*); write the value, or put it in quotes");
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    add(mark, DeckNode::Kind::null, {}, false);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    check_tag(mark, tag);
    add(mark, DeckNode::Kind::text, value, tag == "!");
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    open(mark, DeckNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    check_tag(mark, tag);
    open(mark, DeckNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

private:
  struct Open {
    DeckNode node;
    bool have_key = false;
    std::string key;
    std::string key_place;
  };

  std::string place(const YAML::Mark& mark) const { return fmt::format("{}:{}", source_, mark.line + 1); }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem) const {
    throw Error(ExitCode::usage, fmt::format("{}: {}", place(mark), problem));
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, fmt::format("tag {}: decks take no tags; types follow from the keys", tag));
    }
  }

  void add(const YAML::Mark& mark, DeckNode::Kind kind, const std::string& text, bool quoted) {
    if (!open_.empty() && open_.back().node.kind == DeckNode::Kind::map && !open_.back().have_key) {
      if (kind != DeckNode::Kind::text) {
        refuse(mark, "a key is missing before the colon");
      }
      open_.back().have_key = true;
      open_.back().key = text;
      open_.back().key_place = place(mark);
      return;
    }
    DeckNode node;
    node.kind = kind;
    node.text = text;
    node.quoted = quoted;
    node.place = place(mark);
    attach(std::move(node));
  }

  void open(const YAML::Mark& mark, DeckNode::Kind kind) {
    if (open_.size() >= static_cast<std::size_t>(max_deck_depth)) {
      refuse(mark, fmt::format("maps and lists nested more than {} deep; a deck has sublists of keys", max_deck_depth));
    }
    if (!open_.empty() && open_.back().node.kind == DeckNode::Kind::map && !open_.back().have_key) {
      refuse(mark, "a map or list stands where a key is meant");
    }
    Open entry;
    entry.node.kind = kind;
    entry.node.place = place(mark);
    open_.push_back(std::move(entry));
  }

  void close() {
    DeckNode node = std::move(open_.back().node);
    open_.pop_back();
    attach(std::move(node));
  }

  void attach(DeckNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == DeckNode::Kind::list) {
      parent.node.children.push_back(std::move(node));
      return;
    }
    node.key = std::exchange(parent.key, {});
    node.place = std::exchange(parent.key_place, {});  // of the key: the line a user looks for
    parent.have_key = false;
    const std::string path = path_of(node.key);
    add_child(parent.node, std::move(node), path);
  }

  /// "zo/steps": the keys of the maps around the innermost one, then this one.
  std::string path_of(const std::string& key) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      path += open_[i].key + "/";
    }
    return path + key;
  }

  std::string source_;
  DeckNode root_;
  std::vector<Open> open_;
};

}  // namespace

DeckNode parse_yaml_deck(std::string_view text, const std::string& source) {
  std::istringstream in{std::string(text)};
  TreeBuilder builder(source);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) {
      throw Error(ExitCode::usage, source + ": empty; a deck is a map of sublists (model, data, zo, ...)");
    }
    TreeBuilder rest(source);
    if (parser.HandleNextDocument(rest)) {
      throw Error(ExitCode::usage, source + ": a second YAML document begins after \"---\"; a deck is one");
    }
  } catch (const YAML::Exception& e) {
    throw Error(ExitCode::usage, fmt::format("{}:{}: not valid YAML: {}", source, e.mark.line + 1, e.msg));
  }
  DeckNode root = builder.take();
  if (root.kind != DeckNode::Kind::map) {
    throw Error(ExitCode::usage,
                fmt::format("{}: a deck is a map of sublists (model, data, zo, ...); this is {}", root.place,
                            root.kind == DeckNode::Kind::list ? "a list" : "a single value"));
  }
  return root;
}

}  // namespace distzo2
