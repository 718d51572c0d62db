// How much of a long list of cases a test takes. Every day, some of them; `./do ci` asks its optimized tests for all. A
// sanitizer makes each case five to ten times as dear and looks for what a few of them show as well as all.
#pragma once

#include <algorithm>
#include <vector>

#include <tranship/base/sanitizers.hpp>

#include "support/random_layouts.hpp"

namespace tranship::test {

#if defined(TRANSHIP_SANITIZED)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

/// Returns true in an everyday run. With TRANSHIP_TEST_LONG, or TRANSHIP_TEST_CASES of 1000 or more, a run takes all
/// ranks, orders and rounds.
inline bool is_brief() {
  return !long_tests() && test_cases() < 1000;
}

/// Returns true when long lists of cases are thinned: in a brief run, and under a sanitizer unless long tests are asked
/// for.
inline bool is_thinned() {
  return is_brief() || (is_sanitized && !long_tests());
}

/// All of `sizes`, or in a brief run those up to `most`.
inline std::vector<int> sizes_up_to(int most, std::vector<int> sizes) {
  if (is_brief())
    sizes.erase(std::remove_if(sizes.begin(), sizes.end(), [&](int size) { return size > most; }), sizes.end());
  return sizes;
}

/// Takes every case, or where lists are thinned one of `of` (choose one that has no factor in common with the loops'
/// counts).
class Thinned {
 public:
  explicit Thinned(Index of) : of_(is_thinned() ? of : 1) {}
  /// Returns true when the next case is taken; the first one is.
  bool takes_next() { return next_++ % of_ == 0; }

 private:
  Index of_;
  Index next_ = 0;
};

}  // namespace tranship::test
