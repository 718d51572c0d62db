// Private: places of the program for messages: user_place, behind a call site that lies in a header of the standard
// library, that of an object made by std::make_unique, emplace and the like; and place_of_code.
#pragma once

#include <string>

#include <tranship/base/call_site.hpp>

namespace tranship {

/// Where the program's own code is that is on the stack of this thread now: "turns.cpp:12" where there is debug
/// information (debug_lines.hpp), else "turn_all(World&)+0x1c", or "plugin.so+0x4a1c" where a file does not name the
/// function. Empty for a call site outside the standard library, and where the stack does not show such code. Without
/// debug information, functions of the namespaces std and tranship are not the program's. Reads the program's file: for
/// messages of errors.
std::string user_place(CallSite where);

/// The place of the instruction before `address`, as user_place() writes it, by the innermost line that is neither in
/// the standard library nor in a header of this one, where there is such a line.
std::string place_of_code(const void* address);

}  // namespace tranship
