// Private: finds places of the program's own code for messages. user_place() looks behind a call site in a header of
// the standard library, as std::make_unique and emplace give it; place_of_code() takes an address.
#pragma once

#include <string>

#include <tranship/base/call_site.hpp>

namespace tranship {

/// Returns the place of the program's own code on the stack of this thread: "turns.cpp:12" with debug information
/// (debug_lines.hpp), else "turn_all(World&)+0x1c", or "plugin.so+0x4a1c" if the file does not name the function.
/// Returns "" if `where` lies outside the standard library, or if the stack shows no such code. Without debug
/// information, it skips functions of the namespaces std and tranship. It reads the program's file, so use it only for
/// messages of errors.
std::string user_place(CallSite where);

/// Returns the place of the instruction before `address`, in the format of user_place(). With debug information, this
/// is the innermost line outside the standard library and the headers of tranship, if there is one.
std::string place_of_code(const void* address);

}  // namespace tranship
