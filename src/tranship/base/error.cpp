#include <tranship/base/error.hpp>
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

namespace detail {

void assertion_failed(const char* expression, const char* file, int line) {
  throw_error(ErrorCode::internal, "assertion failed: {} ({}:{})", expression, file, line);
}

}  // namespace detail
}  // namespace tranship
