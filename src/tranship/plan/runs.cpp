#include "tranship/plan/runs.hpp"

#include <algorithm>
#include <numeric>

#include <tranship/plan/comb.hpp>

namespace tranship {
namespace {

using Wide = __int128;
using Modular = unsigned __int128;  ///< intermediate sums may wrap; the final values fit

/// Return the sum over all i in [0, n) of i, of i * (i + 1) / 2, and of i * i.
Modular sum_of(Wide n) {
  return n % 2 == 0 ? Modular(n / 2) * Modular(n - 1) : Modular(n) * Modular((n - 1) / 2);
}
Modular sum_of_triangles(Wide n) {
  Wide factors[] = {n - 1, n, n + 1};
  for (const int divisor : {2, 3})
    *std::find_if(factors, factors + 3, [&](Wide f) { return f % divisor == 0; }) /= divisor;
  return Modular(factors[0]) * Modular(factors[1]) * Modular(factors[2]);
}
Modular sum_of_squares(Wide n) {
  return 2 * sum_of_triangles(n) - sum_of(n);
}

/// Returns the sum of max(0, first + t * step - u * period) over all t in [0, count) and u >= 0. It works like Euclid's
/// algorithm: each round transposes the triangle under the line.
Modular ramp_sum(Wide first, Wide step, Wide count, Wide period) {
  Modular out = 0;
  if (first <= 0) {
    const Wide below = std::min(count, -first / step + 1);
    first += below * step;
    count -= below;
  }
  while (count > 0 && first > 0) {
    // Takes out whole periods of `first`, then of `step`: rows of the triangle with a closed form.
    const Wide whole = (first - 1) / period;
    first -= whole * period;
    // the sum over t and j in [1, whole] of first + t * step + j * period
    out += Modular(whole) * (Modular(first) * Modular(count) + Modular(step) * sum_of(count)) +
           Modular(period) * sum_of(whole + 1) * Modular(count);
    const Wide q = step / period;
    step -= q * period;
    // the sum over t and j in [1, q * t] of first + t * step + j * period
    out += Modular(q) * (Modular(first) * sum_of(count) + Modular(step) * sum_of_squares(count));
    const Modular halves = q % 2 == 0
                               ? Modular(q / 2) * (Modular(q) * sum_of_squares(count) + sum_of(count))
                               : Modular(q) * (Modular((q - 1) / 2) * sum_of_squares(count) + sum_of_triangles(count));
    out += Modular(period) * halves;
    // Row u = 0.
    out += Modular(first) * Modular(count) + Modular(step) * sum_of(count);
    // The rows above it, beginning with the shortest, are the next triangle.
    const Wide last = first + (count - 1) * step, rows = (last - 1) / period;
    first = last - rows * period;
    count = rows;
    std::swap(step, period);
  }
  return out;
}

/// Returns ramp_sum() over the stretches of the source alone: u < source.count.
Modular ramps(const RunLattice& lattice, Wide x) {
  const LocalComb &source = lattice.source, &target = lattice.target;
  return ramp_sum(x, target.period, target.count, source.period) -
         ramp_sum(x - Wide(source.count) * source.period, target.period, target.count, source.period);
}

/// Returns the least t >= 0 with lower <= t * step modulo m <= upper. Such a t must exist, and 0 <= lower <= upper < m.
Index first_within(Index step, Index m, Index lower, Index upper) {
  if (lower == 0) return 0;
  if (step == 0) return 0;
  const Index t = (lower - 1) / step + 1;
  if (Wide(t) * step <= upper) return t;
  // No multiple of `step` lies in between. Finds the least number of rounds after which one does.
  const Index rounds = first_within(m % step, step, floor_modulo(-upper, step), floor_modulo(-lower, step));
  return Index((Wide(rounds) * m + lower - 1) / step + 1);
}

}  // namespace

bool RunLattice::is_sound() const noexcept {
  constexpr Wide reach_max = Wide(3) << 61;
  constexpr Index length_max = Index(1) << 60;
  for (const LocalComb* comb : {&source, &target}) {
    if (comb->length < 1 || comb->length > length_max || comb->count < 1 || comb->period < comb->length ||
        comb->pitch < comb->length)
      return false;
    const Wide apart = distance < 0 ? -Wide(distance) : Wide(distance);
    if (Wide(comb->count - 1) * comb->period + comb->length + apart > reach_max) return false;
  }
  return distances() >= 2 && distances() <= lattice_distances_max;
}

Index RunLattice::distances() const noexcept {
  return (source.length + target.length - 1) / std::gcd(source.period, target.period);
}

Index RunLattice::cells() const noexcept {
  // ramp(x) - ramp(x - length) counts the source cells below x. The cells in a stretch of the target are those below
  // its end minus those below its start.
  const Wide from = distance, to = from + target.length;
  return Index(ramps(*this, to) - ramps(*this, from) - ramps(*this, to - source.length) +
               ramps(*this, from - source.length));
}

Index RunLattice::stretches() const noexcept {
  // ramp(x) - ramp(x - 1) counts the source stretches that begin below x. Those that meet a stretch of the target begin
  // below its end, and end above its start.
  const Wide from = Wide(distance) - source.length + 1, to = Wide(distance) + target.length;
  return Index(ramps(*this, to) - ramps(*this, to - 1) - ramps(*this, from) + ramps(*this, from - 1));
}

RunLattice::Share RunLattice::up_to(Index length) const noexcept {
  const Index a = source.length, b = target.length, longest = std::min(a, b), x = std::min(length, longest);
  if (x < 1) return {};
  if (x == longest) return {stretches(), cells()};
  // Distances go from the stretch of the source to that of the target. Those from 1 - b to x - b and from a - x to a -
  // 1 leave 1 to x cells. `over(y)` is the sum of max(0, distance + y).
  const auto over = [&](Index y) { return ramps(*this, Wide(distance) + y); };
  const Modular at_b = over(b), left = over(b - x), left_count = left - over(b - x - 1);
  const Modular right = over(x - a), right_count = over(x - a + 1) - right, behind = over(-a);
  const Modular count = (at_b - over(b - 1)) - left_count + right_count - (over(1 - a) - behind);
  const Modular sum = at_b - left - Modular(x) * left_count + Modular(x) * right_count - right + behind;
  return {Index(count), Index(sum)};
}

void RunLattice::for_each_run(FunctionRef<void(const Run&)> f) const {
  const Comb a{0, source.length, source.period, source.count}, b{distance, target.length, target.period, target.count};
  meet(a, b, [&](const CombMeeting& m) {
    f({.source = source.start + m.a * source.pitch + m.a_offset,
       .target = target.start + m.b * target.pitch + m.b_offset,
       .length = m.length,
       .count = m.count,
       .source_pitch = m.a_step * source.pitch + m.a_drift,
       .target_pitch = m.b_step * target.pitch + m.b_drift});
  });
}

LatticeWalk::LatticeWalk(const RunLattice& lattice, Index first, Index end)
    : lattice_(lattice),
      end_(std::min(end, lattice.target.count)),
      up_{0, 1, lattice.target.period},
      down_{1, 0, -lattice.source.period},
      target_(first) {
  const Index window = lattice.source.length + lattice.target.length - 1;
  // Runs Euclid's algorithm on the distances until both steps stay within the window. Every step of the walk is a sum
  // of these two.
  const auto shorten = [&](Step& longer, const Step& other) {
    const Index p = longer.delta < 0 ? -longer.delta : longer.delta, n = other.delta < 0 ? -other.delta : other.delta;
    const Index times = std::min(p / n, (p - window) / n + 1);
    longer.source += times * other.source;
    longer.target += times * other.target;
    longer.delta += times * other.delta;
  };
  while (up_.delta >= window || -down_.delta >= window)
    up_.delta >= -down_.delta ? shorten(up_, down_) : shorten(down_, up_);
  const auto reach = [&](const Step& s) {
    return Wide(s.source) * lattice.source.period + Wide(s.target) * lattice.target.period;
  };
  up_first_ = reach(up_) < reach(down_);

  // Finds the first stretch of the target that meets a stretch of the source, as if the source had no first stretch.
  const Index lowest = 1 - lattice.target.length, highest = lattice.source.length - 1;
  const Index a = lattice.source.period, b = lattice.target.period;
  if (lattice.distance < lowest) target_ = std::max(target_, ceil_divide(lowest - lattice.distance, b));
  if (target_ >= end_) return;
  const Wide at = Wide(lattice.distance) + Wide(target_) * b - lowest;
  const Index past = Index((at % a + a) % a);
  if (past >= window) {
    const Index more = first_within(b % a, a, a - past, a - past + window - 1);
    if (more >= end_ - target_) {
      target_ = end_;
      return;
    }
    target_ += more;
  }
  const Wide here = Wide(lattice.distance) + Wide(target_) * b;
  const Wide over = here - highest;
  source_ = Index(over > 0 ? (over - 1) / a + 1 : -(-over / a));
  delta_ = Index(here - Wide(source_) * a);
  while (source_ < 0 && target_ < end_) next();
}

void LatticeWalk::take(const Step& step) noexcept {
  // Stops before the indices leave the lattice, so that none overflows.
  if (step.target >= end_ - target_ || step.source >= lattice_.source.count - source_) {
    target_ = end_;
    return;
  }
  source_ += step.source;
  target_ += step.target;
  delta_ += step.delta;
}

void LatticeWalk::next() noexcept {
  const bool up = delta_ + up_.delta<lattice_.source.length, down = delta_ + down_.delta> - lattice_.target.length;
  if (up && (up_first_ || !down)) return take(up_);
  if (down) return take(down_);
  // Neither step alone stays within the window, so it takes both.
  take({up_.source + down_.source, up_.target + down_.target, up_.delta + down_.delta});
}

Index AxisEntry::cells() const noexcept {
  Index out = 0;
  for (const Run& run : runs) out += run.cells();
  for (const RunLattice& lattice : lattices) out += lattice.cells();
  return out;
}

void AxisEntry::for_each_run(FunctionRef<void(const Run&)> f) const {
  for (const Run& run : runs) f(run);
  for (const RunLattice& lattice : lattices) lattice.for_each_run(f);
}

}  // namespace tranship
