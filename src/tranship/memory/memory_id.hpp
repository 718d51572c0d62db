// Detail: MemoryId, how the memories of one Devices (device/devices.hpp) are numbered.
#pragma once

namespace tranship {

/// Number of a memory within Devices; the host's is 0.
using MemoryId = int;

}  // namespace tranship
