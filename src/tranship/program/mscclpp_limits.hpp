// MSCCL++'s own executor has limits, and makes fewer promises than the executors here; neither is reported there. Both
// are found here before a plan goes to a card.
#pragma once

#include <string>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

/// One line for each limit that the program is beyond, each kind of step that does something else there, and each
/// promise that the program needs and its executor does not make (Finding::Missing), with all numbers and the first
/// place. A list without lines means that plan files of the program run there and are right, launch after launch, on
/// one stream of each rank. As of MSCCL++ 0.9, execution_common.hpp and its kernels.
///
/// Costs two proofs (verify.hpp). Throws `bad_file` where verify() does; a proof that takes too long is a line.
std::vector<std::string> mscclpp_objections(const Program& program);

}  // namespace tranship
