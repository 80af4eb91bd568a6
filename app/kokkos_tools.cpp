// SPDX-License-Identifier: BSD-3-Clause
#include "app/kokkos_tools.hpp"

#include "core/error.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace distzo2 {

void check_kokkos_tools() {
  for (const char* variable : {"KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr) continue;
    std::istringstream names(value);
    for (std::string name; std::getline(names, name, ';');)
      if (::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)  // stays loaded: Kokkos opens it again
        throw Error(ExitCode::usage,
                    fmt::format("{}: {}; accepted: Kokkos Tools libraries with ; between them", variable, ::dlerror()));
  }
}

}  // namespace distzo2
