// Worlds of communicators of MPI. Compiled by the program, with the <mpi.h> of its MPI, whichever it is; tranship
// itself is linked to none.
#pragma once

#include <mpi.h>

#include <tranship/fabric/mpi/join_mpi.hpp>
#include <tranship/fabric/mpi/mpi_calls.hpp>
#include <tranship/fabric/rank_scope.hpp>

namespace tranship {

/// Collective over the processes of an intracommunicator, in any part of a job: each becomes the rank of a world that
/// it is in `comm`. Ranks that can hand each other a descriptor share memory; all others exchange messages on a
/// duplicate of `comm`, which itself is the caller's as before and may be freed at once. A process may be in several
/// worlds, and end them in any order, which may be another one on each rank. Below MPI_THREAD_MULTIPLE this does not
/// hold where a world has ranks of other machines: a rank that leaves waits up to a minute until they have left, too.
///
/// MPI must have been initialised, and is never finalised here. Where it was initialised with MPI_THREAD_MULTIPLE, a
/// thread answers the ranks of other machines while this one computes; at lower levels they wait until this rank waits
/// or makes progress in a call of its own. A world that is there still when MPI is finalised is left then, as by
/// RankScope::finish(): its calls throw `invalid_use` afterwards where they need the ranks of other machines.
///
/// Throws on all processes `invalid_use` for MPI_COMM_NULL, for an intercommunicator and while MPI does not run, which
/// a session alone does not change; `mismatch` where builds of tranship, its settings or heaps differ; `timeout`, where
/// some do not come; `no_memory`; `io`. Throws `invalid_use` on a thread that has not initialised MPI where its level
/// is below MPI_THREAD_SERIALIZED; the other processes then wait for this one.
inline RankScope join_mpi(MPI_Comm comm, const JoinOptions& options = {}) {
  return join_mpi(detail::mpi::calls, detail::mpi::bits_of(comm), options);
}

}  // namespace tranship
