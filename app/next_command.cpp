// SPDX-License-Identifier: BSD-3-Clause
#include "app/next_command.hpp"

#include "parallel/launcher.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>

namespace distzo2 {
namespace {

/// The text as one word of a shell's command.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

std::string next_command(const RunConfig& config, const RunFolder& folder, const MemoryPlan& plan, FinalModel model) {
  const std::string program = shell_word(program_invocation_name), final = shell_word(folder.final_model().string());
  if (config.model.random()) return {};
  if (model == FinalModel::not_written)
    return fmt::format("export   {} export --trajectory {} --output {}", program, shell_word(folder.path.string()),
                       final);
  if (model == FinalModel::unevaluated) return {};
  // A run's store lies in its folder, but an evaluation has none: it needs a place for what fits no memory.
  const bool needs_scratch = plan.disk_bytes > 0 && config.memory.scratch_folder.empty();
  return fmt::format(
      "evaluate {} evaluate {} --model {}{}", program, shell_word(folder.deck().string()), final,
      needs_scratch ? " --set " + shell_word("memory/scratch folder=" + folder.path.string()) : std::string());
}

std::string resume_command(const TrainOptions& options, const RunConfig& config, const RunFolder& folder, int ranks) {
  std::string started;
  if (ranks > 1) {
    const std::optional<Launcher> launcher = find_launcher();
    started = fmt::format("{} -n {} ", launcher ? launcher->name : "mpirun", ranks);
  }
  std::string line = fmt::format("resume   {}{} train {}", started, shell_word(program_invocation_name),
                                 shell_word(options.deck.deck.string()));
  for (const std::string& set : options.deck.sets) line += " --set " + shell_word(set);
  if (config.output.folder.empty()) line += " --set " + shell_word("output/folder=" + folder.path.string());
  return line + " --resume auto";
}

}  // namespace distzo2
