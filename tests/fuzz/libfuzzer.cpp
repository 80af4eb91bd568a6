// SPDX-License-Identifier: BSD-3-Clause
// What libFuzzer calls: --target=NAME chooses, --targets lists them.
#include "tests/fuzz/target.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

const distzo2::FuzzTarget* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string_view option = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    for (const distzo2::FuzzTarget& target : distzo2::fuzz_targets()) {
      if (argument == "--targets") std::puts(target.name);
      if (argument.starts_with(option) && argument.substr(option.size()) == target.name) chosen = &target;
    }
    if (argument == "--targets") {
      std::fflush(stdout);
      std::quick_exit(EXIT_SUCCESS);
    }
  }
  if (chosen == nullptr) {
    std::fputs("fuzz_readers: --target=NAME is needed; --targets lists them\n", stderr);
    std::quick_exit(EXIT_FAILURE);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
