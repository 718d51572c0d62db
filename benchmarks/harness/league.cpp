#include <filesystem>

#include <harness/league.hpp>

namespace tranship::bench {
namespace {

struct Program {
  const char* name;
  const char* file;
  Launcher launcher;
};

constexpr Program programs[] = {
    {"tranship", "contestant_tranship", Launcher::none},
    {"Open MPI", "contestant_openmpi", Launcher::open_mpi},
    {"MPICH", "contestant_mpich", Launcher::mpich},
    {"FFTW-MPI", "contestant_fftw", Launcher::open_mpi},
    {"ScaLAPACK", "contestant_scalapack", Launcher::open_mpi},
    {"PETSc", "contestant_petsc", Launcher::open_mpi},
    {"Global Arrays", "contestant_ga", Launcher::open_mpi},
};

}  // namespace

std::vector<std::shared_ptr<Contender>>& League::with_ranks(int ranks) {
  if (ranks != ranks_) running_.clear();
  ranks_ = ranks;
  running_.resize(std::size(programs));
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const Program& program = programs[i];
    const auto path = folder / program.file;
    if (running_[i] || !std::filesystem::exists(path)) continue;
    if (program.launcher != Launcher::none && peers_ == Peers::left_out) continue;
    running_[i] = std::make_shared<Team>(
        TeamOptions{.name = program.name, .program = path.string(), .launcher = program.launcher, .ranks = ranks});
  }
  return running_;
}

}  // namespace tranship::bench
