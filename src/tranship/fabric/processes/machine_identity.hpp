// Private: which machine, and which of its containers, a process is in: within one, sockets without a name in any file
// system are found.
#pragma once

#include <array>
#include <cstdint>

namespace tranship {

/// Differs from one start of a machine to the next.
std::array<std::uint8_t, 16> this_start_of_the_machine();
/// The namespace in which its sockets have names.
std::uint64_t this_network();

}  // namespace tranship
