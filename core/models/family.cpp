// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/family.hpp"

#include "core/error.hpp"
#include "core/models/families.hpp"

namespace distzo2 {

const Family& family_of(FamilyKind kind) {
  switch (kind) {
    case FamilyKind::opt:
      return opt_family();
    case FamilyKind::llama:
      return llama_family();
    case FamilyKind::qwen3:
      return qwen3_family();
  }
  throw Error(ExitCode::internal, "a model family without stages");
}

}  // namespace distzo2
