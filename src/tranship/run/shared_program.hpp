// Private: programs that follow from their name alone, made once for all ranks of a process that are threads.
#pragma once

#include <memory>
#include <string>

#include <tranship/base/function_ref.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// What `make` gave where any rank of this process holds the program of that name, or else what it gives now. May be
/// called by several threads at once.
std::shared_ptr<const Program> shared_program(const std::string& name, FunctionRef<Program()> make);

}  // namespace tranship
