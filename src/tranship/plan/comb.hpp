// Private: Finds where two combs of intervals meet: the arithmetic behind runs. Let g be the gcd of the periods. A
// member of one comb can meet a member of the other at distance c only if g divides their phase difference plus c. So
// at most ceil(W/g) distances matter (W: the number of distances at which members touch), and each of them gives one
// meeting by one extended gcd.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>

#include <tranship/base/index.hpp>

namespace tranship {

/// `count` intervals of `length` cells, `period` apart.
struct Comb {
  Index start;
  Index length;
  Index period;
  Index count;
};

/// A meeting of two combs: `count` stretches of `length` cells. Stretch k lies in member a + k*a_step at a_offset +
/// k*a_drift, and in member b + k*b_step at b_offset + k*b_drift.
struct CombMeeting {
  Index a, a_step, a_offset, a_drift;
  Index b, b_step, b_offset, b_drift;
  Index length, count;

  CombMeeting mirrored() const { return {b, b_step, b_offset, b_drift, a, a_step, a_offset, a_drift, length, count}; }
};

/// Meets one interval (member `b` of a comb, starting at `start`) with a comb: all members inside it in one meeting,
/// and each cut member in its own. Members may overlap, so several may be cut at either end.
template <class Emit>
void meet_interval(const Comb& a, Index b, Index start, Index length, Emit&& emit) {
  const Index end = start + length, period = std::max<Index>(1, a.period);
  const Index low = std::max<Index>(0, floor_divide(start - a.start - a.length, period) + 1);
  const Index high = std::min(a.count - 1, floor_divide(end - 1 - a.start, period));
  auto cut = [&](Index from, Index to) {
    for (Index k = from; k <= to; ++k) {
      const Index at = a.start + k * a.period;
      const Index lower = std::max(at, start), upper = std::min(at + a.length, end);
      emit(CombMeeting{k, 0, lower - at, 0, b, 0, lower - start, 0, upper - lower, 1});
    }
  };
  const Index first = std::max(low, ceil_divide(start - a.start, period));
  const Index last = std::min(high, floor_divide(end - a.length - a.start, period));
  if (first > last) return cut(low, high);
  cut(low, first - 1);
  emit(CombMeeting{first, 1, 0, 0, b, 0, a.start + first * a.period - start, a.period, a.length, last - first + 1});
  cut(last + 1, high);
}

/// Meets a comb with one whose members are all the same interval, as the turns around a torus are.
template <class Emit>
void meet_turns(const Comb& a, const Comb& b, Emit&& emit) {
  meet_interval(a, 0, b.start, b.length, [&](CombMeeting m) {
    if (m.count > b.count) {
      for (; m.b < b.count; ++m.b) emit(m);
      return;
    }
    for (Index k = 0; k < m.count; ++k)
      emit(CombMeeting{m.a + k * m.a_step, 0, m.a_offset, 0, 0, 1, m.b_offset + k * m.b_drift, 0, m.length, b.count});
  });
}

/// Returns x with x * a = 1 modulo m, for coprime a and m.
inline Index inverse_modulo(Index a, Index m) {
  Index r0 = m, r1 = floor_modulo(a, m), t0 = 0, t1 = 1;
  while (r1 != 0) {
    const Index q = r0 / r1;
    r0 = std::exchange(r1, r0 - q * r1);
    t0 = std::exchange(t1, t0 - q * t1);
  }
  return m == 1 ? 0 : floor_modulo(t0, m);
}

/// Calls `emit` with all meetings of two combs.
template <class Emit>
void meet(const Comb& a, const Comb& b, Emit&& emit) {
  if (a.length <= 0 || b.length <= 0 || a.count <= 0 || b.count <= 0) return;
  if (b.count == 1) return meet_interval(a, 0, b.start, b.length, emit);
  if (b.period == 0) return meet_turns(a, b, emit);
  if (a.count == 1) return meet_interval(b, 0, a.start, a.length, [&](const CombMeeting& m) { emit(m.mirrored()); });

  const Index g = std::gcd(a.period, b.period);
  const Index window = a.length + b.length - 1;
  // If one side has fewer members than there are distances, loops over its members instead.
  if (std::min(a.count, b.count) < window / g) {
    if (b.count <= a.count) {
      for (Index k = 0; k < b.count; ++k) meet_interval(a, k, b.start + k * b.period, b.length, emit);
    } else {
      for (Index k = 0; k < a.count; ++k)
        meet_interval(b, k, a.start + k * a.period, a.length, [&](const CombMeeting& m) { emit(m.mirrored()); });
    }
    return;
  }

  // Members u of a and t of b lie `delta` apart when t*Tb - u*Ta = delta - (b.start - a.start).
  const Index ma = a.period / g, mb = b.period / g;
  const Index inverse = inverse_modulo(mb, ma);
  const Index phase = b.start - a.start;
  const Index lowest = 1 - b.length;
  for (Index delta = lowest + floor_modulo(phase - lowest, g); delta < a.length; delta += g) {
    const Index c = (delta - phase) / g;
    Index t = static_cast<Index>(static_cast<__int128>(floor_modulo(c, ma)) * inverse % ma);
    const __int128 u_wide = (static_cast<__int128>(t) * mb - c) / ma;
    // Solutions are (t + k*ma, u + k*mb). This is the first with t >= 0 and u >= 0:
    Index u = 0;
    if (u_wide < 0) {
      const __int128 k = (-u_wide + mb - 1) / mb;
      const __int128 t_wide = t + k * ma;
      if (t_wide >= b.count) continue;
      t = static_cast<Index>(t_wide);
      u = static_cast<Index>(u_wide + k * mb);
    } else {
      if (u_wide >= a.count) continue;
      u = static_cast<Index>(u_wide);
    }
    // t is the least non-negative solution, but u may require a larger one.
    if (t >= b.count || u >= a.count) continue;
    const Index count = std::min((b.count - 1 - t) / ma, (a.count - 1 - u) / mb) + 1;
    const Index a_offset = std::max<Index>(delta, 0), b_offset = std::max<Index>(-delta, 0);
    emit(
        CombMeeting{u, mb, a_offset, 0, t, ma, b_offset, 0, std::min(a.length - a_offset, b.length - b_offset), count});
  }
}

}  // namespace tranship
