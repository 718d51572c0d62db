// Detail: a world of the processes of a communicator, by a table of the calls of its MPI.
#pragma once

#include <tranship/fabric/mpi/mpi_module.hpp>
#include <tranship/fabric/rank_scope.hpp>

namespace tranship {

/// Implements the call with an MPI_Comm of <tranship/mpi.hpp>, which has its comment. `mpi` stays where it is.
RankScope join_mpi(const MpiModule& mpi, MpiHandle comm, const JoinOptions& options);

}  // namespace tranship
