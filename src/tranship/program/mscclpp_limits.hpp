// What MSCCL++'s own executor makes of a program: the limits that its source has, which nothing reports there. The
// executors here have none of them.
#pragma once

#include <string>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

/// One line for each limit that the program is beyond and each step that does something else there, with both numbers
/// and the first place. Empty: plan files of it run there. As of MSCCL++ 0.9, execution_common.hpp and its kernels.
std::vector<std::string> mscclpp_objections(const Program& program);

}  // namespace tranship
