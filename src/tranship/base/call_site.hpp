// Detail: CallSite, where in the source a call was made, for the messages of waits: what std::source_location is for,
// which clang 14 does not have with libstdc++.
#pragma once

#include <string>

namespace tranship {

struct CallSite {
  const char* file;
  int line;

  /// As a default argument: the place of the outermost call.
  static constexpr CallSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// "file:line"; "an unknown place" for line 0.
std::string to_string(CallSite where);

}  // namespace tranship
