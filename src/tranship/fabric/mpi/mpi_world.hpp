// Private: how the processes of an MPI job, or of a communicator, become the ranks of a world. Those that can hand each
// other a descriptor share memory, and are the ranks of one host; all others exchange messages of MPI.
#pragma once

#include <optional>

#include <tranship/fabric/mpi/join_mpi.hpp>

namespace tranship {

/// Gives each process the name of a host: those of other names share no memory with it, wherever they run.
inline constexpr const char* host_variable = "TRANSHIP_HOST";

/// MpiWire::Sizes, the same on all ranks.
inline constexpr const char* mpi_sizes_variable = "TRANSHIP_MPI_SIZES";

/// Joins the job for which mpirun or srun has started this process; empty where none has, or where separate worlds are
/// asked for. Initialises MPI where that has not been done, and finalises it at the end of the process then. Throws as
/// below, and `mismatch` where the launcher has started another number of processes than MPI knows of.
std::optional<RankScope> join_mpi_job();

}  // namespace tranship
