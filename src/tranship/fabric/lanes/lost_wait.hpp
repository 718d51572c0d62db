// lost_wait, the error of a kernel that has given up a wait, from the record that the wait has left in memory of the
// host (lanes/wait_guard.hpp).
#pragma once

#include <tranship/base/error.hpp>
#include <tranship/lanes/wait_guard.hpp>

namespace tranship {

/// Whether a wait has given up. Valid once the kernel has ended, by itself or by a trap.
bool has_lost_wait(const WaitRecord& record) noexcept;
/// `timeout`, in the words of waits on the CPU, with the rank and the block that have waited, their call, and what they
/// have waited for. `rank` and `peer` of the error are those of a wait of World.
Error lost_wait(const WaitRecord& record);

}  // namespace tranship
