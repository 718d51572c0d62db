// Private: What the environment says of a launcher that has started this process as one of several, and that starts no
// ranks of tranship: mpirun, srun.
#pragma once

#include <optional>
#include <string>

#include <tranship/base/function_ref.hpp>

namespace tranship {

/// Set to 1, it says that each process that another launcher has started is to have worlds of its own.
inline constexpr const char* separate_worlds_variable = "TRANSHIP_SEPARATE_WORLDS";

struct OtherLauncher {
  std::string name;       ///< "mpirun (Open MPI)"
  int processes = 0;      ///< that it has started; 0 where it says only that there are several
  std::string variables;  ///< those that say so: "OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=2"

  /// "mpirun (Open MPI) has started this process as one of 4 (OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=2)".
  std::string text() const;
};

/// The launcher that has started this process as one of several; nothing for one alone. `variable` gives the text of a
/// variable of the environment, or nullptr. What MPI says comes before what Slurm says, whose step may be the one in
/// which mpirun runs.
std::optional<OtherLauncher> other_launcher(FunctionRef<const char*(const char*)> variable);

/// Whose library the processes of a launcher load.
enum class MpiFamily { openmpi, mpich };

struct MpiLauncher {
  const char* name;  ///< as that of OtherLauncher
  MpiFamily family;
  /// The other family's library may be meant as well: a launcher with PMIx, as srun --mpi=pmix, is part of no MPI. Open
  /// MPI always speaks PMIx, MPICH where it was built so.
  bool may_be_other_family = false;
};

/// The launcher of an MPI, or one with PMIx, that has started this process, as one of several or alone.
std::optional<MpiLauncher> mpi_launcher(FunctionRef<const char*(const char*)> variable);

/// That of this process, unless separate worlds are asked for. Throws `bad_text` where that variable is neither 0
/// nor 1.
std::optional<OtherLauncher> other_launcher();

/// Throws `unsupported` where there is such a launcher. `what` would come about in each of the processes: "the one
/// rank of a world of its own". Throws as other_launcher() does.
void refuse_other_launcher(const char* what);

}  // namespace tranship
