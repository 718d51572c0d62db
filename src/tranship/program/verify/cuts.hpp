// Private: chooses the sizes of chunks for which a proof executes a program, so that it holds for all sizes.
//
// The boundaries of all accesses are linear in the size, except for the remainders of what shares or turns of a loop
// cut. An execution depends only on the order of these boundaries and of the lengths between them, so all sizes of one
// order need one execution. The order stops changing, except for remainders, once chunks are large against the shares,
// and once a loop takes more turns than semaphores allow in advance.
#pragma once

#include <vector>

#include <tranship/program/program.hpp>

namespace tranship::verification {

/// A size of chunks in units, which are never cut: 16 bytes, or the packets for 16 bytes of data.
struct Cut {
  Index units = 1;
};

/// For a loop: the units of a chunk that one turn takes, and the number of turns, as in the executor.
Index turn_units(const Pipeline& loop) noexcept;
Index turns_of(const Pipeline& loop, Cut cut) noexcept;

/// Units of each operand of a step.
struct Part {
  Index begin, end;
};
/// The part of its operands that a step works on in one turn of the loop around it, if any; equal for all operands.
Part part_of(const Step& step, const Pipeline* loop, Index turn, Cut cut) noexcept;

/// Returns one size for each order of boundaries. When comparing all sizes would take too long, for programs with many
/// operands or shares, the largest of the small sizes are left out.
std::vector<Cut> cuts_of(const Program& program);

}  // namespace tranship::verification
