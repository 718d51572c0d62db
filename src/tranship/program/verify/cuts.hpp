// Private: Which sizes of chunks a proof tries, so that it holds for all of them.
//
// Whatever the size, boundaries of what steps touch are linear in it but for the remainders of what is cut into shares
// or turns of a loop. An execution depends on nothing but the order of these boundaries, and that of the lengths
// between them. So sizes whose boundaries lie in the same order need one execution; orders stop to change once chunks
// are large against the shares, but for their remainders, and once a loop has taken more turns than semaphores allow in
// advance.
#pragma once

#include <vector>

#include <tranship/program/program.hpp>

namespace tranship::verification {

/// Chunks of so many units, which are what is never cut: 16 bytes, of which packets have as many as they have data.
struct Cut {
  Index units = 1;
};

/// Of a loop: the units of a chunk that one turn takes, and the turns that there are. As the executor has them.
Index turn_units(const Pipeline& loop) noexcept;
Index turns_of(const Pipeline& loop, Cut cut) noexcept;

/// Units of each operand of a step.
struct Part {
  Index begin, end;
};
/// What a step works on in one turn of its loop, if it is in one: as much of all its operands.
Part part_of(const Step& step, const Pipeline* loop, Index turn, Cut cut) noexcept;

/// One size for each order of boundaries. Where a program has so many operands or shares that comparing all sizes would
/// take too long, the largest of the small ones are left out.
std::vector<Cut> cuts_of(const Program& program);

}  // namespace tranship::verification
