// Private: How library code fails: `throw_error(code, format, ...)`; and how it writes texts: `fmt::format` and
// `join_text`. The formats are checked where they are written and expanded in one place, so that a file that includes
// this pays for neither fmt's formatting nor its ranges. It includes fmt, so no public header may include it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include <tranship/base/error.hpp>

namespace tranship {

/// The Error of a format whose arguments have lost their types.
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

/// The values of a range as "{}" writes them, with `separator` between each two.
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
