// Private: What keeps exceptions from programs in C. Invariant: whatever may allocate with a throwing operator new runs
// inside of `guarded`.
#pragma once

namespace tranship::vsip {

/// What `f` returns, or `otherwise` where it throws, which it does where memory is short.
template <class R, class F>
R guarded(R otherwise, F f) noexcept {
  try {
    return f();
  } catch (...) {
    return otherwise;
  }
}

}  // namespace tranship::vsip
