// How things are timed: contestants take turns, round by round, and each gets the median of its rounds. What disturbs
// the machine for a while then disturbs all of them, and their ratios stay comparable.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <tranship/base/deadline.hpp>

namespace tranship::bench {

struct Contestant {
  std::function<void()> run;
  /// Called before every run and not timed: for benchmarks on fresh data. May be empty.
  std::function<void()> prepare = {};
};

struct MeasureOptions {
  /// At least 9, so that the median stands on something.
  int rounds = 9;
  /// A round repeats the run until it has been timed for so long; it makes a clock's steps and costs vanish.
  std::int64_t round_ns_min = 5'000'000;
  std::int64_t (*clock_ns)() = now_ns;
};

/// The median time of one run of each contestant, in nanoseconds, in their order. Throws `invalid_use` for fewer than 9
/// rounds or no contestant.
std::vector<double> medians_ns(const std::vector<Contestant>& contestants, const MeasureOptions& options);

/// Calls `turn(contestant)` for every contestant in every round; each round starts with another one, so that none
/// always comes after the same one.
void take_turns(int contestants, int rounds, const std::function<void(int)>& turn);

/// Throws `invalid_use` for fewer than 9.
void check_rounds(int rounds);

/// The median; the mean of the two in the middle for an even count. `values` must not be empty.
double median(std::vector<double> values);

}  // namespace tranship::bench
