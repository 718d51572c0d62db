// Private: The machine that this process runs on, as hwloc sees it, and where its ranks run.
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
  on_request,  ///< for memory that asks for them, as arrays of 4 MiB and more do
  always,
};

struct Machine {
  int cores = 0;             ///< that this process may run on
  int processing_units = 0;  ///< hardware threads of these
  int memory_nodes = 0;
  /// The caches that the first core sees; 0 where there is none.
  Index l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  HugePages huge_pages = HugePages::never;
};

/// Looked at once.
const Machine& this_machine();

/// What the system can give now without taking from others, as far as it says; INT64_MAX where it does not.
Index available_memory_bytes();
/// The least that the control groups of a process, of version 1 or 2, and those around them have left; INT64_MAX where
/// none has a limit. `membership` is the text of /proc/self/cgroup, and the hierarchies lie in the folder `root`.
Index available_memory_bytes_of_groups(const std::string& membership, const std::string& root);

/// What of this process's memory the system holds in the machine's now; 0 where it does not say.
Index resident_memory_bytes();

/// " (this user may have 100 processes and threads: ulimit -u)", for errors of systems that start no more of them; ""
/// where there is no limit.
std::string limits_of_processes();

/// The pages of this program, without its shared libraries, that hold variables which live as long as it does. Large
/// ones that a linker keeps in a segment of their own (-mcmodel=medium) are not among them.
std::span<std::byte> statics_of_executable();

/// What `automatic` comes to here. Throws `invalid_use` for a TRANSHIP_PIN that names no pinning.
Pinning resolved(Pinning pinning);
/// Binds the calling thread as rank `rank` of `size`. A system that refuses leaves it where it is: pinning is never
/// needed.
void pin_rank(Pinning pinning, int rank, int size);

const char* name_of(Pinning pinning);
const char* name_of(HugePages huge_pages);

}  // namespace tranship
