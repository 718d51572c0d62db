// How library code fails: `throw_error(code, format, ...)`. Private: includes fmt, so no public header may include it.
#pragma once

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tranship/base/error.hpp>

namespace tranship {

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void throw_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw make_error(code, format, std::forward<Args>(args)...);
}

}  // namespace tranship
