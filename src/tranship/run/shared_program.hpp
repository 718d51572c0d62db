// Private: programs that are determined by their names, made once for all ranks of a process that are threads.
#pragma once

#include <memory>
#include <string>

#include <tranship/base/function_ref.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// Returns the program of that name while any rank of this process holds it; otherwise calls `make`. Thread-safe.
std::shared_ptr<const Program> shared_program(const std::string& name, FunctionRef<Program()> make);

}  // namespace tranship
