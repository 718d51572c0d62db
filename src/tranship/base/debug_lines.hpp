// Private: DebugLines, which finds the source line of an address of code in the debug information of the running
// program. It needs libdw at configure time and at run time, and a program built with debug information; otherwise it
// finds no lines.
#pragma once

#include <memory>
#include <string_view>

#include <tranship/base/function_ref.hpp>

namespace tranship {

/// The lines of this process. The constructor reads the process's list of files, and find() reads debug information.
/// Both are slow: use it only for messages of errors.
class DebugLines {
 public:
  DebugLines();
  ~DebugLines();
  DebugLines(const DebugLines&) = delete;
  DebugLines& operator=(const DebugLines&) = delete;

  /// Calls `f` for the line of the instruction at `address`, then for each call through which the compiler inlined it
  /// there, from the innermost to the outermost, until `f` returns true. Returns true when `f` did.
  bool find(const void* address, FunctionRef<bool(std::string_view file, int line)> f) const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // nullptr: no lines
};

}  // namespace tranship
