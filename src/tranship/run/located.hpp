// Private: adds the call site in the program to errors.
#pragma once

#include <tranship/base/error.hpp>
#include <tranship/fabric/seam/wait_note.hpp>

namespace tranship {

/// Returns the error with the call site at its end, unless it already names it.
inline Error located(const Error& error, CallSite where) {
  const std::string place = short_name(where);
  if (error.message().find(place) != std::string::npos) return error;
  return error.with_message(error.message() + " [" + place + "]");
}

/// Returns f(); adds the call site to its errors.
template <class F>
decltype(auto) located(CallSite where, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw located(error, where);
  }
}

}  // namespace tranship
