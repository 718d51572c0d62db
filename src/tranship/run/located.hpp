// Private: errors that say from which call of the program they come.
#pragma once

#include <tranship/base/error.hpp>
#include <tranship/fabric/seam/wait_note.hpp>

namespace tranship {

/// The error with the place of the call at its end, unless it names that place already.
inline Error located(const Error& error, CallSite where) {
  const std::string place = short_name(where);
  if (error.message().find(place) != std::string::npos) return error;
  return error.with_message(error.message() + " [" + place + "]");
}

/// What `f` gives; its errors name the call.
template <class F>
decltype(auto) located(CallSite where, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw located(error, where);
  }
}

}  // namespace tranship
