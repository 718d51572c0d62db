// Processes that mpirun or srun has started: several would be as many worlds of one rank.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/processes/launch_program.hpp>
#include <tranship/fabric/processes/other_launcher.hpp>
#include <tranship/fabric/rank_scope.hpp>

#include "support/paths.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

using Variables = std::map<std::string, std::string>;

auto texts_of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}
std::optional<OtherLauncher> launcher_of(const Variables& variables) {
  const auto variable = texts_of(variables);
  return other_launcher(variable);
}

TEST(OtherLauncher, is_known_by_its_variables) {
  struct Case {
    Variables variables;
    const char* name;
    int processes;
    const char* says;
  };
  const Case cases[] = {
      {{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}, {"PMIX_RANK", "2"}},
       "mpirun (Open MPI)",
       4,
       "OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=2"},
      {{{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}, "mpiexec (PMI)", 2, "PMI_SIZE=2, PMI_RANK=0"},
      {{{"MV2_COMM_WORLD_SIZE", "3"}}, "mpiexec (MVAPICH)", 3, "MV2_COMM_WORLD_SIZE=3"},
      {{{"JSM_NAMESPACE_SIZE", "6"}, {"JSM_NAMESPACE_RANK", "5"}}, "jsrun", 6, "JSM_NAMESPACE_SIZE=6, "},
      {{{"PMIX_RANK", "1"}}, "a launcher with PMIx", 0, "PMIX_RANK=1"},
      {{{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "7"}},
       "srun (Slurm)",
       8,
       "SLURM_STEP_NUM_TASKS=8, SLURM_PROCID=7"},
      {{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}, {"PMIX_RANK", "0"}}, "srun (Slurm)", 2, "SLURM_"},
      // mpirun in a step of its own for each machine.
      {{{"OMPI_COMM_WORLD_SIZE", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}},
       "mpirun (Open MPI)",
       8,
       "OMPI_"},
  };
  for (const Case& one : cases) {
    const std::optional<OtherLauncher> found = launcher_of(one.variables);
    ASSERT_TRUE(found) << one.says;
    EXPECT_EQ(found->name, one.name);
    EXPECT_EQ(found->processes, one.processes) << one.says;
    EXPECT_EQ(found->variables.substr(0, std::string(one.says).size()), one.says);
  }
}

TEST(OtherLauncher, of_one_process_is_none) {
  for (const Variables& variables : {
           Variables{},
           {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}},
           {{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}},
           {{"PMIX_RANK", "0"}},
           {{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}},  // a job script
           {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}},
           {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}},
           {{"OMPI_COMM_WORLD_SIZE", "many"}, {"PMI_SIZE", ""}},
       })
    EXPECT_FALSE(launcher_of(variables)) << (variables.empty() ? "" : variables.begin()->first);
}

TEST(OtherLauncher, says_whose_library_its_processes_load) {
  const auto family_of = [](const Variables& variables) -> std::optional<MpiFamily> {
    const auto variable = texts_of(variables);
    const std::optional<MpiLauncher> launcher = mpi_launcher(variable);
    return launcher ? std::optional(launcher->family) : std::nullopt;
  };
  EXPECT_EQ(family_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "2"}}), MpiFamily::openmpi);
  EXPECT_EQ(family_of({{"OMPI_COMM_WORLD_SIZE", "1"}}), MpiFamily::openmpi);
  EXPECT_EQ(family_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}), MpiFamily::mpich);
  EXPECT_EQ(family_of({{"MV2_COMM_WORLD_SIZE", "3"}}), MpiFamily::mpich);
  // Each process of one job starts another one.
  EXPECT_EQ(family_of({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMI_SIZE", "4"}}), MpiFamily::mpich);
  EXPECT_EQ(family_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "1"}}), MpiFamily::openmpi);
  // What a user sets.
  EXPECT_EQ(family_of({{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_COMM_WORLD_SIZE", ""}}), std::nullopt);
  // What many MPIs share: srun --mpi=pmix says no more, srun --mpi=pmi2 is like mpiexec, and srun alone is no MPI's.
  const Variables slurm = {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}};
  const auto in_step = [&](Variables more) {
    more.insert(slurm.begin(), slurm.end());
    return more;
  };
  const Variables with_pmix = in_step({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "slurm.pmix.3.0"}});
  EXPECT_EQ(family_of(with_pmix), MpiFamily::openmpi);
  EXPECT_TRUE(mpi_launcher(texts_of(with_pmix))->may_be_other_family);
  EXPECT_EQ(family_of(in_step({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}})), MpiFamily::mpich);
  EXPECT_EQ(family_of(slurm), std::nullopt);
}

TEST(OtherLauncher, of_slurm_is_told_how_to_start_processes_that_meet) {
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  const Error error = error_of_rank([] { launch([](World&) {}); });
  unsetenv("SLURM_STEP_NUM_TASKS");
  require_says(error, ErrorCode::unsupported,
               {"srun (Slurm) has started this process as one of 2", "`srun --mpi=pmix` (Open MPI)",
                "`srun --mpi=pmi2` (MPICH)", "`tranship launch -n 2 PROGRAM`"});
}

class UnderMpirun : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  }
  void TearDown() override {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", separate_worlds_variable}) unsetenv(name);
  }
};

TEST_F(UnderMpirun, worlds_that_nothing_has_asked_for_are_refused) {
  const auto refuses = [](FunctionRef<void()> call) {
    require_says(error_of_rank(call), ErrorCode::unsupported,
                 {"mpirun (Open MPI) has started this process as one of 2 (OMPI_COMM_WORLD_SIZE=2, ",
                  "`tranship launch -n 2 PROGRAM`", "RankScope::join(id, rank, size)", "TRANSHIP_SEPARATE_WORLDS=1"});
  };
  refuses([] { launch([](World&) {}); });
  refuses([] { RankScope::join(); });
  refuses([] { launch_program({}, {{2, {"true"}}}); });
  setenv(separate_worlds_variable, "0", 1);
  refuses([] { RankScope::join(); });
  setenv(separate_worlds_variable, "perhaps", 1);
  require_says(error_of_rank([] { RankScope::join(); }), ErrorCode::bad_text,
               {"TRANSHIP_SEPARATE_WORLDS is 'perhaps'"});
}

TEST_F(UnderMpirun, worlds_that_the_program_asks_for_are_made) {
  int ranks = 0;
  launch(1, [&](World& world) { ranks += world.size(); });
  launch(3, [&](World& world) {
    if (world.rank() == 0) ranks += world.size();
  });
  EXPECT_EQ(ranks, 4);
  launch_processes(2, [](World& world) { world.barrier(); });
  {
    RankScope joined = RankScope::join(WorldId::make(), 0, 1);
    EXPECT_EQ(joined.world().size(), 1);
  }
  setenv(separate_worlds_variable, "1", 1);
  launch([&](World& world) { ranks = world.size(); });
  EXPECT_EQ(ranks, 1);
  EXPECT_EQ(launch_program({}, {{2, {"true"}}}).exit_codes, std::vector<int>(2, 0));
}

// A rank of `tranship launch`, under mpirun -n 1 or where each process launches ranks of its own.
TEST(UnderMpirunProgram, DISABLED_is_a_rank) {
  launch([](World& world) { require(world.size() == 2, "{} ranks", world.size()); });
}
TEST_F(UnderMpirun, ranks_that_tranship_has_started_join_its_world) {
  setenv(separate_worlds_variable, "1", 1);
  const auto launched = [] {
    return launch_program({}, {{2, this_program("UnderMpirunProgram.DISABLED_is_a_rank")}}).exit_codes;
  };
  EXPECT_EQ(launched(), std::vector<int>(2, 0));
  unsetenv(separate_worlds_variable);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_EQ(launched(), std::vector<int>(2, 0));
}

}  // namespace
}  // namespace tranship::test
