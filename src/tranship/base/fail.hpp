// Private: How library code fails, `throw_error(code, format, ...)`, and how it writes texts, `fmt::format` and
// `join_text`. Formats are checked at compile time and expanded in one source file, so including this header does not
// instantiate fmt's formatting. It includes fmt, so no public header may include it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include <tranship/base/error.hpp>

namespace tranship {

/// Builds the Error from a format and type-erased arguments.
Error formatted_error(ErrorCode code, fmt::string_view format, fmt::format_args args);
[[noreturn]] void throw_formatted(ErrorCode code, fmt::string_view format, fmt::format_args args);

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return formatted_error(code, format, fmt::make_format_args(args...));
}

template <class... Args>
[[noreturn]] void throw_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw_formatted(code, format, fmt::make_format_args(args...));
}

/// Returns the values of a range as "{}" formats them, with `separator` between them.
template <class Range>
std::string join_text(const Range& range, std::string_view separator) {
  std::string text;
  bool first = true;
  for (const auto& value : range) {
    if (!first) text += separator;
    first = false;
    text += fmt::format("{}", value);
  }
  return text;
}

}  // namespace tranship
