// Programs of collective operations, one thread block a rank, as the benchmark needs them: in packets for little data,
// between two meetings for much.
#pragma once

#include <contest/work.hpp>

#include <tranship/program/program.hpp>

namespace contest {

tranship::Program program_of(const Work& work);

}  // namespace contest
