// Error, the exception that tranship throws: a code of errors.def, a message, and where the failure happened. Inside
// the library, expected failures travel as Result<T> (result.hpp); the public calls throw them as Error.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace tranship {

enum class ErrorCode : int {
#define TRANSHIP_ERROR(name, number, text) name = number,
#include <tranship/base/errors.def>
#undef TRANSHIP_ERROR
};

/// Returns the name of a code as errors.def spells it ("invalid_use").
const char* name_of(ErrorCode code) noexcept;
/// Returns one line that says what a code means.
const char* text_of(ErrorCode code) noexcept;

/// A failure. `what()` is the message. `rank` and `peer` are -1 where they do not apply; `column` is a 1-based column
/// of a text, or -1.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const noexcept { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const noexcept { return message_; }
  /// Returns this failure with another message; code, rank, peer and column are kept.
  Error with_message(std::string message) const {
    Error out = *this;
    out.message_ = std::move(message);
    return out;
  }

  int rank = -1;
  int peer = -1;
  std::int64_t column = -1;

 private:
  ErrorCode code_;
  std::string message_;
};

namespace detail {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}

}  // namespace tranship

// Assertions of the library's own invariants. `TRANSHIP_ASSERT` is always on and must be cheap;
// `TRANSHIP_ASSERT_COSTLY` is on in debug and sanitizer builds. Both throw Error(internal), so a rank that finds a bug
// makes its peers fail with its name.
#define TRANSHIP_ASSERT(expression) \
  ((expression) ? void(0) : ::tranship::detail::assertion_failed(#expression, __FILE__, __LINE__))
#if defined(TRANSHIP_COSTLY_ASSERTIONS)
#define TRANSHIP_ASSERT_COSTLY(expression) TRANSHIP_ASSERT(expression)
#else
#define TRANSHIP_ASSERT_COSTLY(expression) void(0)
#endif
