// lost_wait: makes the error of a kernel that has given up a wait, from the record that the wait left in host memory
// (lanes/wait_guard.hpp).
#pragma once

#include <tranship/base/error.hpp>
#include <tranship/lanes/wait_guard.hpp>

namespace tranship {

/// Returns true if a wait has given up. Valid once the kernel has ended, normally or by a trap.
bool has_lost_wait(const WaitRecord& record) noexcept;
/// Returns a `timeout` error in the words of waits on the CPU: it names the rank and the block that waited, their call,
/// and the condition. Error::rank and Error::peer are set as for a wait of World.
Error lost_wait(const WaitRecord& record);

}  // namespace tranship
