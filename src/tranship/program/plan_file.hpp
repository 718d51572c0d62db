// Programs as files: the execution plans of MSCCL++, as JSON.
//
// Three versions are read: the present one, the one before it (`buff` where the present one says `buffer_type`, no
// names of reductions), and that of releases up to 0.7 (`inputChunks` and `o_buff`). The present one is written;
// reading what was written gives the same program. A key that none of the versions has may change what a plan means: it
// is kept and named (Program::unknown_keys). A key that has a meaning elsewhere is refused. Files are untrusted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tranship/program/program.hpp>

namespace tranship {

/// A longer text is refused.
inline constexpr std::size_t program_text_bytes_max = std::size_t(1) << 30;

/// Reads a program and checks its structure. Throws `bad_text`, with the path of what does not belong there, or
/// `bad_file`, with the rank, block and step of what makes no sense.
Program read_program(std::string_view text);

/// The program as text that ends with a newline, which MSCCL++ reads.
std::string write_program(const Program& program);

}  // namespace tranship
