// Where tests find files of the tree, the command, and themselves: known to one source file alone, so that all others
// compile alike wherever the tree lies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tranship::test {

/// The path of what lies at `below` in the folder tests/.
std::string test_path(std::string_view below);
/// The path of the command `tranship` that this build has made; empty in test programs that do not run it.
const char* command_path() noexcept;

/// The words that run the disabled test `name` of this test program, as a program of its own: whatever piece of the
/// tests this process runs (GTEST_SHARD_INDEX).
std::vector<std::string> this_program(const std::string& name);

}  // namespace tranship::test
