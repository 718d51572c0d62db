// Private: MPI in this process: its beginning and its end, and what can be said of it.
#pragma once

#include <string>
#include <vector>

#include <tranship/fabric/mpi/mpi_library.hpp>
#include <tranship/fabric/mpi/mpi_module.hpp>

namespace tranship {

/// Returns "MPI_THREAD_SINGLE" and so on.
const char* name_of(MpiThreads threads);

/// Returns true when the launcher of an MPI waits for this process to initialise it.
bool mpi_launcher_waits();

/// Initialises MPI where that has not been done, and finalises it at the end of the process then. Throws `invalid_use`
/// where MPI has been finalised, and `io`.
void initialise_mpi(const MpiModule& mpi);
/// Finalises the MPI of this process, after a rest where it needs one. Returns the code of MPI_Finalize.
int finalise_mpi(const MpiLibrary& library);
/// It is not finalised at the end, which would wait for processes that are gone.
void leave_mpi_running() noexcept;

/// For people who wonder why their ranks do not meet.
struct MpiFacts {
  std::string why_none;  ///< where no MPI was found; what follows but for the modules and interfaces is empty then
  std::string library;   ///< its path
  std::string chosen;    ///< why this one
  std::string version;
  std::string abi;
  /// "MPI_THREAD_MULTIPLE"; empty where MPI is not running.
  std::string threads;
  int processes = 0;  ///< of MPI_COMM_WORLD; 0 where MPI is not running
  std::vector<MpiModuleFile> modules;
  /// Network interfaces that are up: "eth0 10.1.2.3". MPI chooses among them.
  std::vector<std::string> interfaces;
};
/// Initialises MPI where a launcher waits for that. Throws as initialise_mpi() does.
MpiFacts mpi_facts();

}  // namespace tranship
