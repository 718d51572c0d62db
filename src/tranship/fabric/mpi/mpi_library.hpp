// Private: finds the MPI of this process, and the module that speaks its ABI.
#pragma once

#include <string>
#include <vector>

#include <tranship/base/result.hpp>
#include <tranship/fabric/mpi/mpi_module.hpp>

namespace tranship {

struct MpiLibrary {
  const MpiModule* mpi = nullptr;
  std::string path;     ///< of the library
  std::string chosen;   ///< "this process has it", "TRANSHIP_MPI", "mpirun (Open MPI) has started this process"
  std::string version;  ///< "Open MPI v4.1.4, package: ..."
};

/// The library that names the MPI, where this process has none yet: a path, or a name for the loader.
inline constexpr const char* mpi_library_variable = "TRANSHIP_MPI";
/// A folder with modules, before those where this library lies.
inline constexpr const char* mpi_modules_variable = "TRANSHIP_MPI_MODULES";

/// Loaded once: an MPI that the process has already, else the one that the environment names, else that of the launcher
/// that has started this process. Fails with `unsupported`, which says what was looked for and what is missing.
const Result<MpiLibrary>& mpi_library();

/// A file, or the name of one that is missing, for each ABI.
struct MpiModuleFile {
  std::string abi;
  std::string file;
  bool is_there = false;
};
std::vector<MpiModuleFile> mpi_modules();

struct MpiCandidate {
  std::string path;  ///< or a name for the loader
  std::string chosen;
};

/// The libraries that may be those of the launcher that has started this process, the likeliest first: those beside the
/// launcher, which is the process itself or one above it, and then what the loader finds.
std::vector<MpiCandidate> mpi_of_launcher();

/// Throws `io` for a code of MPI that is not 0: "MPI cannot receive: ...".
void check_mpi(const MpiModule& mpi, int code, const char* what);

}  // namespace tranship
