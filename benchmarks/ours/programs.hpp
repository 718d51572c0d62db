// Programs of collective operations, one thread block a rank, as the benchmark needs them. Little data goes to the
// scratch memory of each peer in packets. What is more is loaded by those who need it, because a line that one core
// writes and another one holds costs several times as much as one that is read: from a copy in scratch memory, which
// takes one meeting, or from the input, which takes two.
#pragma once

#include <contest/work.hpp>

#include <tranship/program/program.hpp>

namespace contest {

tranship::Program program_of(const Work& work);

}  // namespace contest
