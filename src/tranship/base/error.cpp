#include "tranship/base/error.hpp"

#include <tranship/base/fail.hpp>

namespace tranship {

const char* name_of(ErrorCode code) noexcept {
  switch (code) {
#define TRANSHIP_ERROR(name, number, text) \
  case ErrorCode::name:                    \
    return #name;
#include <tranship/base/errors.def>
#undef TRANSHIP_ERROR
  }
  return "unknown";
}

const char* text_of(ErrorCode code) noexcept {
  switch (code) {
#define TRANSHIP_ERROR(name, number, text) \
  case ErrorCode::name:                    \
    return text;
#include <tranship/base/errors.def>
#undef TRANSHIP_ERROR
  }
  return "unknown error code";
}

Error formatted_error(ErrorCode code, fmt::string_view format, fmt::format_args args) {
  return Error(code, fmt::vformat(format, args));
}

void throw_formatted(ErrorCode code, fmt::string_view format, fmt::format_args args) {
  throw formatted_error(code, format, args);
}

namespace detail {

void assertion_failed(const char* expression, const char* file, int line) {
  throw_error(ErrorCode::internal, "assertion failed: {} ({}:{})", expression, file, line);
}

}  // namespace detail
}  // namespace tranship
