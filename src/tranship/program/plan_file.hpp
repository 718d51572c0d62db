// Programs as files: reads and writes the execution plans of MSCCL++, as JSON.
//
// Three versions are read: the present one, the one before it (`buff` instead of `buffer_type`, no names of
// reductions), and that of releases up to 0.7 (`inputChunks` and `o_buff`). The present one is written, and reading it
// back gives an equal program. Files are untrusted. A key that no version has may change what a plan means, so it is
// kept and reported (Program::unknown_keys). A key that has a meaning only elsewhere is refused.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tranship/program/program.hpp>

namespace tranship {

/// Longer texts are refused.
inline constexpr std::size_t program_text_bytes_max = std::size_t(1) << 30;

/// Reads a program and checks its structure. Throws `bad_text`, with the path, for text that is not a plan, and
/// `bad_file`, with the rank, block and step, for a plan that makes no sense or is too long; throws `unsupported` for
/// an old plan in which a block waits for another one without a barrier.
Program read_program(std::string_view text);

/// Returns the program as text that MSCCL++ reads; it ends with a newline. Throws `bad_file` where check_structure
/// does, and `unsupported` for a reduction that plan files have no word for.
std::string write_program(const Program& program);

}  // namespace tranship
