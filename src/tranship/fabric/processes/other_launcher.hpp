// Private: Detects from the environment a launcher (mpirun, srun) that has started this process as one of several and
// starts no ranks of tranship.
#pragma once

#include <optional>
#include <string>

#include <tranship/base/function_ref.hpp>

namespace tranship {

/// Set to 1, it allows each process that another launcher has started to have worlds of its own.
inline constexpr const char* separate_worlds_variable = "TRANSHIP_SEPARATE_WORLDS";

struct OtherLauncher {
  std::string name;       ///< "mpirun (Open MPI)"
  int processes = 0;      ///< that it has started; 0 if it only says that there are several
  std::string variables;  ///< that show this: "OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=2"

  /// Returns "mpirun (Open MPI) has started this process as one of 4 (OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=2)".
  std::string text() const;
};

/// Returns the launcher that has started this process as one of several; nothing for a process started alone.
/// `variable` returns the value of an environment variable, or nullptr. Variables of MPI take precedence over those of
/// Slurm, whose step may contain mpirun.
std::optional<OtherLauncher> other_launcher(FunctionRef<const char*(const char*)> variable);

/// The MPI whose library the processes of a launcher load.
enum class MpiFamily { openmpi, mpich };

struct MpiLauncher {
  const char* name;  ///< as in OtherLauncher
  MpiFamily family;
  /// The library may also be of the other family: a launcher with PMIx, such as srun --mpi=pmix, belongs to no MPI.
  /// Open MPI always supports PMIx, MPICH only if it was built with it.
  bool may_be_other_family = false;
};

/// Returns the launcher, of an MPI or with PMIx, that has started this process, whether alone or as one of several.
std::optional<MpiLauncher> mpi_launcher(FunctionRef<const char*(const char*)> variable);

/// Returns the launcher of this process, or nothing if separate worlds are requested. Throws `bad_text` if that
/// variable is neither 0 nor 1.
std::optional<OtherLauncher> other_launcher();

/// Throws `unsupported` if there is such a launcher. `what` is what each of its processes would get: "a world of its
/// own, of one rank". Throws as other_launcher() does.
void refuse_other_launcher(const char* what);

}  // namespace tranship
