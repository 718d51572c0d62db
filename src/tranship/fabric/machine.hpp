// Private: The machine that this process runs on, as hwloc reports it, and the cores that its ranks run on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <tranship/base/index.hpp>

namespace tranship {

enum class Pinning : std::uint8_t;  // launch.hpp

enum class HugePages : std::uint8_t {
  never,
  on_request,  ///< for memory that requests them, as arrays of 4 MiB and more do
  always,
};

struct Machine {
  int cores = 0;             ///< available to this process
  int processing_units = 0;  ///< hardware threads of these cores
  int memory_nodes = 0;
  /// Sizes of the caches of the first core; 0 if there is none.
  Index l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  HugePages huge_pages = HugePages::never;
};

/// The machine is examined once per process.
const Machine& this_machine();

/// Returns how many bytes the system can grant now without taking memory from other programs; INT64_MAX if unknown.
Index available_memory_bytes();
/// Returns the least memory left in the control groups (version 1 or 2) of a process and their ancestors; INT64_MAX if
/// none has a limit. `membership` is the text of /proc/self/cgroup, and the hierarchies lie in the folder `root`.
Index available_memory_bytes_of_groups(const std::string& membership, const std::string& root);

/// Returns how much of this process's memory is resident; 0 if unknown.
Index resident_memory_bytes();

/// Returns " (this user may have 100 processes and threads: ulimit -u)", for errors about processes or threads that
/// cannot be started; "" if there is no limit.
std::string limits_of_processes();

/// Returns the pages of the executable, without its shared libraries, that hold static variables. Large variables that
/// a linker keeps in a segment of their own (-mcmodel=medium) are not included.
std::span<std::byte> statics_of_executable();

/// Returns the pinning that `automatic` stands for here. Throws `invalid_use` for a TRANSHIP_PIN that names no pinning.
Pinning resolved(Pinning pinning);
/// Binds the calling thread as rank `rank` of `size`. If the system refuses, the thread stays where it is, since
/// pinning only affects speed.
void pin_rank(Pinning pinning, int rank, int size);

const char* name_of(Pinning pinning);
const char* name_of(HugePages huge_pages);

}  // namespace tranship
