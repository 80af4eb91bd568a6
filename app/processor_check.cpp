// SPDX-License-Identifier: BSD-3-Clause
// Compiled for any x86-64 processor and linked into the program itself: everything else is built for x86-64-v3 and
// would die of an illegal instruction, with no word, on a processor that lacks it.
#include <unistd.h>

#include <cstring>

namespace {

void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) ::_exit(1);
}

/// Before the constructors of all our other sources, which may use any instruction already: no library is called here
/// but the C library's own.
__attribute__((constructor(101))) void check_processor() {
  __builtin_cpu_init();
  const struct {
    const char* name;
    bool present;
  } needed[] = {{" AVX", __builtin_cpu_supports("avx") != 0},     {" AVX2", __builtin_cpu_supports("avx2") != 0},
                {" BMI", __builtin_cpu_supports("bmi") != 0},     {" BMI2", __builtin_cpu_supports("bmi2") != 0},
                {" F16C", __builtin_cpu_supports("f16c") != 0},   {" FMA", __builtin_cpu_supports("fma") != 0},
                {" LZCNT", __builtin_cpu_supports("lzcnt") != 0}, {" MOVBE", __builtin_cpu_supports("movbe") != 0}};
  bool all = true;
  for (const auto& feature : needed) all = all && feature.present;
  if (all) return;
  say("distzo2: this processor is not of the kind x86-64-v3 that the program is built for; it lacks");
  for (const auto& feature : needed)
    if (!feature.present) say(feature.name);
  say("\n");
  ::_exit(1);
}

}  // namespace
