// error_of: the error that a call throws, as text.
#pragma once

#include <string>

#include <tranship/base/error.hpp>

namespace tranship::test {

/// "code: message"; empty when nothing is thrown.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return std::string(name_of(error.code())) + ": " + error.what();
  }
  return "";
}

}  // namespace tranship::test
