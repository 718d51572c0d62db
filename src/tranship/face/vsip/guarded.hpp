// Private: guarded, which keeps exceptions from programs in C. Invariant: code that may allocate with a throwing
// operator new runs inside of `guarded`.
#pragma once

namespace tranship::vsip {

/// Returns what `f` returns, or `otherwise` if it throws, which it does when memory is short.
template <class R, class F>
R guarded(R otherwise, F f) noexcept {
  try {
    return f();
  } catch (...) {
    return otherwise;
  }
}

}  // namespace tranship::vsip
