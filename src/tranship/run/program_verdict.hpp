// Private: decides whether the ranks of a world may run a program. One rank proves it for all, and each process
// remembers what it has proved.
#pragma once

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

struct ProgramVerdict {
  bool needs_meeting = false;  ///< all ranks must meet between two launches
};

/// Collective; all ranks pass the same program. Rank 0 verifies it, unless its process has found it right before, and
/// tells the others. Throws on every rank what verify() throws, and `invalid_use` for a program that is not right.
ProgramVerdict verdict_on(World& world, const Program& program, CallSite where);

/// How often this process has verified a program here, for tests.
Index programs_verified() noexcept;

}  // namespace tranship
