// Private: DebugLines, the lines of source that debug information gives for addresses of code. Where libdw was there at
// configure time, and is there when a program runs, whose files bear debug information; elsewhere there are none.
#pragma once

#include <memory>
#include <string_view>

#include <tranship/base/function_ref.hpp>

namespace tranship {

/// Of this process. Making one reads its list of files, and a look reads the debug information: for messages of errors.
class DebugLines {
 public:
  DebugLines();
  ~DebugLines();
  DebugLines(const DebugLines&) = delete;
  DebugLines& operator=(const DebugLines&) = delete;

  /// Calls `f` for the line of the instruction at `address`, then for the line of each call by which the compiler has
  /// put it there (inlined functions), from the inside out, until it returns true. Returns true when `f` did.
  bool find(const void* address, FunctionRef<bool(std::string_view file, int line)> f) const;

 private:
  struct State;
  std::unique_ptr<State> state_;  // nullptr: no lines
};

}  // namespace tranship
