// Private: whether the ranks of a world may run a program, found out once: by one rank for all of them, and in each
// process for all later ones.
#pragma once

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

struct ProgramVerdict {
  bool needs_meeting = false;  ///< of all ranks between two launches
};

/// Collective; all ranks bring the same program. Rank 0 verifies it, unless its process has
/// found it right before, and tells the others. Throws what verify() does and `invalid_use` for a program that is not
/// right, on every rank alike.
ProgramVerdict verdict_on(World& world, const Program& program, CallSite where);

/// How often this process has verified a program for that, for tests.
Index programs_verified() noexcept;

}  // namespace tranship
