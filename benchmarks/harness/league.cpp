#include <algorithm>
#include <filesystem>
#include <iterator>

#include <harness/league.hpp>

namespace tranship::bench {
namespace {

struct Program {
  const char* name;
  const char* file;
  Launcher launcher;
  Game game;
};

/// Plays every game.
constexpr Program ours = {ours_in_threads, "contestant_tranship", Launcher::none, {}};
constexpr Program more_of_ours[] = {{ours_in_processes, "contestant_tranship", Launcher::tranship, Game::distributed},
                                    {ours_in_processes, "contestant_tranship", Launcher::tranship, Game::collective},
                                    {ours_in_processes, "contestant_tranship", Launcher::tranship, Game::one_sided}};
constexpr Program all_peers[] = {
    {"Open MPI", "contestant_openmpi", Launcher::open_mpi, Game::distributed},
    {"MPICH", "contestant_mpich", Launcher::mpich, Game::distributed},
    {"FFTW-MPI", "contestant_fftw", Launcher::open_mpi, Game::distributed},
    {"ScaLAPACK", "contestant_scalapack", Launcher::open_mpi, Game::distributed},
    {"PETSc", "contestant_petsc", Launcher::open_mpi, Game::distributed},
    {"Global Arrays", "contestant_ga", Launcher::open_mpi, Game::distributed},
    {"Kokkos DualView", "contestant_kokkos", Launcher::none, Game::coherent},
    {"StarPU", "contestant_starpu", Launcher::none, Game::coherent},
    {"Open MPI", "contestant_openmpi", Launcher::open_mpi, Game::one_sided},
    {"MPICH", "contestant_mpich", Launcher::mpich, Game::one_sided},
    {"Open MPI", "contestant_openmpi", Launcher::open_mpi, Game::collective},
    {"MPICH", "contestant_mpich", Launcher::mpich, Game::collective},
    {"OpenSHMEM", "contestant_oshmem", Launcher::open_mpi, Game::one_sided},
};

}  // namespace

std::vector<std::shared_ptr<Contender>>& League::with_ranks(int ranks, Game game) {
  if (ranks != ranks_ || game != game_) running_.clear();
  ranks_ = ranks;
  game_ = game;
  std::vector<Program> programs = {ours};
  const auto plays = [&](const Program& program) { return program.game == game; };
  std::copy_if(std::begin(more_of_ours), std::end(more_of_ours), std::back_inserter(programs), plays);
  if (peers_ == Peers::invited)
    std::copy_if(std::begin(all_peers), std::end(all_peers), std::back_inserter(programs), plays);
  running_.resize(programs.size());
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Program& program = programs[i];
    const auto path = folder / program.file;
    if (running_[i] || !std::filesystem::exists(path)) continue;
    running_[i] = std::make_shared<Team>(
        TeamOptions{.name = program.name, .program = path.string(), .launcher = program.launcher, .ranks = ranks});
  }
  return running_;
}

}  // namespace tranship::bench
