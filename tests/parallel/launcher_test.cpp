// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/launcher.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"
#include "parallel/mpi_session.hpp"

namespace distzo2 {
namespace {

std::optional<Launcher> launcher_in(const std::map<std::string, std::string>& environment) {
  return find_launcher([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, there_is_none_on_a_workstation_or_in_a_batch_script) {
  EXPECT_FALSE(launcher_in({}));
  // sbatch sets these for the script itself, whatever it asked for.
  EXPECT_FALSE(launcher_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}));
  EXPECT_FALSE(launcher_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
}

TEST(Launcher, is_told_by_what_it_sets) {
  const auto open_mpi = launcher_in(
      {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"PMIX_RANK", "3"}, {"SLURM_PROCID", "0"}});
  ASSERT_TRUE(open_mpi);
  EXPECT_EQ(open_mpi->name, "mpirun");
  EXPECT_EQ(open_mpi->rank, 3);
  EXPECT_EQ(open_mpi->ranks, 4);
  const auto hydra = launcher_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  ASSERT_TRUE(hydra);
  EXPECT_EQ(hydra->name, "mpiexec");
  EXPECT_EQ(hydra->ranks, 2);
  const auto srun = launcher_in({{"PMIX_RANK", "2"}, {"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "3"}});
  ASSERT_TRUE(srun);
  EXPECT_EQ(srun->name, "srun");
  EXPECT_EQ(srun->rank, 2);
  EXPECT_EQ(srun->ranks, 3);
  EXPECT_TRUE(srun->connects);
  const auto other = launcher_in({{"PMIX_RANK", "1"}});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->ranks, 0);  // it does not say
}

TEST(Launcher, srun_without_an_interface_of_mpi_is_refused_before_mpi_is_up) {
  const auto plain = launcher_in({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->connects);
  try {
    const MpiSession session(plain);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    EXPECT_STREQ(e.what(),
                 "srun started 4 processes that cannot find each other; start them with srun --mpi=pmix, or with "
                 "mpirun");
  }
}

TEST(Launcher, singletons_are_explained) {
  EXPECT_NO_THROW(check_world({"mpirun", 0, 4}, 4, "an MPI"));
  EXPECT_NO_THROW(check_world({"a PMIx launcher", 0, 0}, 3, "an MPI"));
  try {
    check_world({"mpirun", 2, 4}, 1, "Open MPI v4.1.4");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    const std::string what = e.what();
    EXPECT_EQ(what.find("mpirun started 4 ranks, but MPI sees 1: each would train alone"), 0U) << what;
    EXPECT_NE(what.find("Open MPI v4.1.4"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace distzo2
