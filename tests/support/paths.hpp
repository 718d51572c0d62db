// Where tests find files of the tree and the command: known to one source file alone, so that all others compile alike
// wherever the tree lies.
#pragma once

#include <string>
#include <string_view>

namespace tranship::test {

/// The path of what lies at `below` in the folder tests/.
std::string test_path(std::string_view below);
/// The path of the command `tranship` that this build has made; empty in test programs that do not run it.
const char* command_path() noexcept;

}  // namespace tranship::test
