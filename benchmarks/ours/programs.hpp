// Programs of collective operations, one thread block a rank, as the benchmark needs them. Little data goes to the
// scratch memory of each peer, in packets or with a signal; what is more is loaded where it lies, between two meetings.
#pragma once

#include <contest/work.hpp>

#include <tranship/program/program.hpp>

namespace contest {

tranship::Program program_of(const Work& work);

}  // namespace contest
