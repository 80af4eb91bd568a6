// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/launcher.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace distzo2 {

std::optional<Launcher> find_launcher(const std::function<const char*(const char*)>& variable) {
  const auto number = [&](const char* name) -> std::optional<int> {
    const char* text = variable(name);
    if (text == nullptr) return std::nullopt;
    const std::string_view view(text);
    int value = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    return error == std::errc() && end == view.data() + view.size() && value >= 0 ? std::optional(value) : std::nullopt;
  };
  // SLURM_PROCID stands in a batch script too; the number of a step's tasks only where srun started the process.
  const std::optional<int> slurm_rank = number("SLURM_PROCID"), slurm_ranks = number("SLURM_STEP_NUM_TASKS");
  const bool in_step = slurm_rank && slurm_ranks;
  if (const auto rank = number("OMPI_COMM_WORLD_RANK"))
    return Launcher{"mpirun", *rank, number("OMPI_COMM_WORLD_SIZE").value_or(0)};
  if (const auto rank = number("PMI_RANK"))
    return Launcher{in_step ? "srun" : "mpiexec", *rank, number("PMI_SIZE").value_or(slurm_ranks.value_or(0))};
  if (const auto rank = number("PMIX_RANK"))
    return Launcher{in_step ? "srun" : "a PMIx launcher", *rank, slurm_ranks.value_or(0)};
  if (in_step && *slurm_ranks > 1) return Launcher{"srun", *slurm_rank, *slurm_ranks, false};
  return std::nullopt;
}

std::optional<Launcher> find_launcher() {
  return find_launcher([](const char* name) { return std::getenv(name); });
}

}  // namespace distzo2
