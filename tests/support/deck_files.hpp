// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.hpp"

namespace distzo2 {

/// A folder of its own for decks, removed at the end.
class DeckFolder {
public:
  DeckFolder() {
    std::string name = (std::filesystem::temp_directory_path() / ("distzo2-deck-" + std::string(6, 'X'))).string();
    if (mkdtemp(name.data()) == nullptr) {
      throw Error(ExitCode::internal, "mkdtemp failed");
    }
    path_ = name;
  }
  ~DeckFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  DeckFolder(const DeckFolder&) = delete;
  DeckFolder& operator=(const DeckFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

private:
  std::filesystem::path path_;
};

/// The message of the Error that `f` throws, its folder taken away, so that "deck.yaml:3" can be compared.
template <class F>
std::string error_of(F f, const std::filesystem::path& folder = {}, ExitCode code = ExitCode::usage) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    std::string message = e.what();
    const std::string prefix = folder.string() + "/";
    for (std::size_t at = message.find(prefix); !folder.empty() && at != std::string::npos; at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

/// The message contains every one of these parts.
template <class... Parts>
void expect_parts(const std::string& message, const Parts&... parts) {
  for (const std::string& part : {std::string(parts)...}) {
    EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" is not in: " << message;
  }
}

}  // namespace distzo2
