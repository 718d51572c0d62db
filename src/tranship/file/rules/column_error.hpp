// Private: errors in texts inside other texts. Each message begins with its 1-based column in the outer text.
#pragma once

#include <string>
#include <string_view>

#include <tranship/base/fail.hpp>

namespace tranship {

[[noreturn]] inline void fail_at(std::size_t at, ErrorCode code, std::string_view message) {
  Error error = make_error(code, "column {}: {}", at + 1, message);
  error.column = static_cast<std::int64_t>(at) + 1;
  throw error;
}

/// Throws an error of a text that begins at `offset` of another text, with its column in the latter.
[[noreturn]] inline void fail_inside(const Error& error, std::size_t offset) {
  const std::string prefix = fmt::format("column {}: ", error.column);
  std::string_view message = error.message();
  if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
  fail_at(offset + static_cast<std::size_t>(error.column > 0 ? error.column - 1 : 0), error.code(), message);
}

}  // namespace tranship
