// Checks whether a plan runs, and runs correctly, on MSCCL++'s own executor. That executor has limits, promises less
// than the executors here, and reports neither, so check a plan before it goes to a GPU.
#pragma once

#include <string>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

/// Returns one line for each limit that the program exceeds, each kind of step that works differently there, and each
/// promise that the program needs and that executor does not make (Finding::Missing), with all numbers and the first
/// place. An empty list means that plan files of the program run there correctly, launch after launch, on one stream of
/// each rank. Follows MSCCL++ 0.9, execution_common.hpp and its kernels.
///
/// Costs two proofs (verify.hpp). Throws `bad_file` where verify() does; a proof that takes too long becomes a line.
std::vector<std::string> mscclpp_objections(const Program& program);

}  // namespace tranship
