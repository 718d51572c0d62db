// Detail: CallSite, the place in the source where a call was made; messages of waits name it. It replaces
// std::source_location, which clang 14 does not have with libstdc++.
#pragma once

#include <string>

namespace tranship {

struct CallSite {
  const char* file;
  int line;

  /// Used as a default argument, returns the place of the outermost call.
  static constexpr CallSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// Returns "file:line", or "an unknown place" for line 0. A call site in the standard library is replaced by the place
/// of the code that called it (user_place.hpp).
std::string to_string(CallSite where);

}  // namespace tranship
