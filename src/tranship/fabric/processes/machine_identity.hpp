// Private: identifies the machine and the container of a process: within one container, processes find sockets that
// have no name in a file system.
#pragma once

#include <array>
#include <cstdint>

namespace tranship {

/// A value that differs from one start of a machine to the next.
std::array<std::uint8_t, 16> this_start_of_the_machine();
/// The network namespace, in which the names of this process's sockets are valid.
std::uint64_t this_network();

}  // namespace tranship
