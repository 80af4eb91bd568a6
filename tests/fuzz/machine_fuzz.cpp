// SPDX-License-Identifier: BSD-3-Clause
#include "io/machine_file.hpp"
#include "tests/fuzz/target.hpp"

namespace distzo2 {
namespace {

/// A machine that is taken is one that its own text gives again.
bool read_machine(std::string_view input) {
  static const std::filesystem::path file = fuzz_folder("machine") / "machine.json";
  write_bytes(file, input);
  return accepted([&] {
    const MachineFile machine = read_machine_file(file);
    const std::string text = machine_text(machine);
    write_bytes(file, text);
    MachineFile again;
    if (!accepted([&] { again = read_machine_file(file); })) found("a machine's own text is refused:\n" + text);
    if (again.name != machine.name || again.note != machine.note || again.sources != machine.sources)
      found("a machine's own text is read as another:\n" + text);
  });
}

const RegisteredTarget machine_target("machine", read_machine);

}  // namespace
}  // namespace distzo2
