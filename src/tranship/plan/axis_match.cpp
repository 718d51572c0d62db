#include <algorithm>
#include <array>
#include <numeric>

#include <tranship/base/error.hpp>
#include <tranship/plan/axis_match.hpp>

namespace tranship {
namespace {

/// `count` intervals of `length`, `period` apart.
struct Comb {
  Index start;
  Index length;
  Index period;
  Index count;
};

/// Where two combs meet: `count` stretches of `length`; stretch k lies in member a + k*a_step at a_offset + k*a_drift,
/// and in member b + k*b_step at b_offset + k*b_drift.
struct Meeting {
  Index a, a_step, a_offset, a_drift;
  Index b, b_step, b_offset, b_drift;
  Index length, count;

  Meeting mirrored() const { return {b, b_step, b_offset, b_drift, a, a_step, a_offset, a_drift, length, count}; }
};

/// One interval (member `b` of a comb, starting at `start`) against a comb: whole members in one meeting, cut ones
/// alone. Members may overlap each other, so that several are cut at either end.
template <class Emit>
void meet_interval(const Comb& a, Index b, Index start, Index length, Emit&& emit) {
  const Index end = start + length, period = std::max<Index>(1, a.period);
  const Index low = std::max<Index>(0, floor_divide(start - a.start - a.length, period) + 1);
  const Index high = std::min(a.count - 1, floor_divide(end - 1 - a.start, period));
  auto cut = [&](Index from, Index to) {
    for (Index k = from; k <= to; ++k) {
      const Index at = a.start + k * a.period;
      const Index lower = std::max(at, start), upper = std::min(at + a.length, end);
      emit(Meeting{k, 0, lower - at, 0, b, 0, lower - start, 0, upper - lower, 1});
    }
  };
  const Index first = std::max(low, ceil_divide(start - a.start, period));
  const Index last = std::min(high, floor_divide(end - a.length - a.start, period));
  if (first > last) return cut(low, high);
  cut(low, first - 1);
  emit(Meeting{first, 1, 0, 0, b, 0, a.start + first * a.period - start, a.period, a.length, last - first + 1});
  cut(last + 1, high);
}

/// A comb whose members are all one interval, as the turns around a torus are: what one of them meets, all meet.
template <class Emit>
void meet_turns(const Comb& a, const Comb& b, Emit&& emit) {
  meet_interval(a, 0, b.start, b.length, [&](Meeting m) {
    if (m.count > b.count) {
      for (; m.b < b.count; ++m.b) emit(m);
      return;
    }
    for (Index k = 0; k < m.count; ++k)
      emit(Meeting{m.a + k * m.a_step, 0, m.a_offset, 0, 0, 1, m.b_offset + k * m.b_drift, 0, m.length, b.count});
  });
}

/// x with x * a = 1 modulo m, for coprime a and m.
Index inverse_modulo(Index a, Index m) {
  Index r0 = m, r1 = floor_modulo(a, m), t0 = 0, t1 = 1;
  while (r1 != 0) {
    const Index q = r0 / r1;
    r0 = std::exchange(r1, r0 - q * r1);
    t0 = std::exchange(t1, t0 - q * t1);
  }
  return m == 1 ? 0 : floor_modulo(t0, m);
}

template <class Emit>
void meet(const Comb& a, const Comb& b, Emit&& emit) {
  if (a.length <= 0 || b.length <= 0 || a.count <= 0 || b.count <= 0) return;
  if (b.count == 1) return meet_interval(a, 0, b.start, b.length, emit);
  if (b.period == 0) return meet_turns(a, b, emit);
  if (a.count == 1) return meet_interval(b, 0, a.start, a.length, [&](const Meeting& m) { emit(m.mirrored()); });

  const Index g = std::gcd(a.period, b.period);
  const Index window = a.length + b.length - 1;
  // Where one side has fewer members than there are distances, go through its members instead.
  if (std::min(a.count, b.count) < window / g) {
    if (b.count <= a.count) {
      for (Index k = 0; k < b.count; ++k) meet_interval(a, k, b.start + k * b.period, b.length, emit);
    } else {
      for (Index k = 0; k < a.count; ++k)
        meet_interval(b, k, a.start + k * a.period, a.length, [&](const Meeting& m) { emit(m.mirrored()); });
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
    // Solutions are (t + k*ma, u + k*mb). The first with t >= 0 and u >= 0:
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
    // t is the least non-negative solution of its class, but u may allow none below it.
    if (t >= b.count || u >= a.count) continue;
    const Index count = std::min((b.count - 1 - t) / ma, (a.count - 1 - u) / mb) + 1;
    const Index a_offset = std::max<Index>(delta, 0), b_offset = std::max<Index>(-delta, 0);
    emit(Meeting{u, mb, a_offset, 0, t, ma, b_offset, 0, std::min(a.length - a_offset, b.length - b_offset), count});
  }
}

/// Members [first, first + count) of a comb of wanted intervals, and the cells of a slice, relative to its first, that
/// they may take.
struct Offer {
  Index first;
  Index count;
  Interval cells;
};

/// What a slice of the source offers to the slices of the target. The first and the last point of a slice of interfaces
/// are owned by the parts beside it as well, and the nearest part gives: below its last point a slice of the target
/// reads the part above such a point, from its last point on the part below. Member k of the target is as if it began
/// at `begin` + k * period. Offers of no members say nothing.
std::array<Offer, 3> offers(const AxisParts& source, const SliceFamily& slice, Index begin, const SliceFamily& target) {
  if (source.partition().points != Points::interfaces) return {{{0, target.count, {0, slice.length}}}};
  const Index first = slice.start, last = slice.start + slice.length - 1;
  const Index turn = begin + std::max<Index>(target.length - 1, 1);  // of member 0: from here on the part below gives
  const auto members_turning_at_or_below = [&](Index point) {
    if (target.period == 0) return point < turn ? 0 : target.count;
    return std::clamp<Index>(floor_divide(point - turn, target.period) + 1, 0, target.count);
  };
  const Index below = members_turning_at_or_below(first), across = members_turning_at_or_below(last);
  const Index lower = first == 0 ? 0 : 1, upper = slice.length - (last == source.extent() - 1 ? 0 : 1);
  return {{{0, below, {lower, slice.length}},
           {below, across - below, {0, slice.length}},
           {across, target.count - across, {0, upper}}}};
}

}  // namespace

Interval AxisWant::source_interval() const noexcept {
  const Index x0 = family.start + lower, x1 = family.start + upper;
  return sign > 0 ? Interval{x0 + offset, x1 + offset} : Interval{offset - x1 + 1, offset - x0 + 1};
}

void append_runs(const AxisParts& source, Index part, const AxisWant& want, std::vector<Run>& runs) {
  const SliceFamily& target = want.family;
  // The last slice of a mirrored family comes first in the source. There the wanted intervals and the slices begin at:
  const Index last = target.count - 1;
  const Index mirrored_by = want.sign > 0 ? 0 : last * target.period;
  const Interval wanted = want.source_interval();
  const Index start = wanted.lower - mirrored_by;
  const Index begin =
      (want.sign > 0 ? target.start + want.offset : want.offset - target.start - target.length + 1) - mirrored_by;
  for (const SliceFamily& slice : source.stretches(part)) {
    for (const Offer& offer : offers(source, slice, begin, target)) {
      const Comb a{slice.start + offer.cells.lower, offer.cells.length(), slice.period, slice.count};
      const Comb b{start + offer.first * target.period, wanted.length(), target.period, offer.count};
      meet(a, b, [&](const Meeting& m) {
        const Index member = offer.first + m.b;
        Run run{.length = m.length, .count = m.count};
        run.source = slice.local + m.a * slice.pitch + slice.left + offer.cells.lower + m.a_offset;
        run.source_pitch = m.a_step * slice.pitch + m.a_drift;
        run.target = target.local + target.left;
        if (want.sign > 0) {
          run.target += member * target.pitch + want.lower + m.b_offset;
          run.target_pitch = m.b_step * target.pitch + m.b_drift;
        } else {
          // The source runs backward along the target.
          run.target += (last - member) * target.pitch + want.upper - m.b_offset - m.length;
          run.target_pitch = -(m.b_step * target.pitch + m.b_drift);
          run.source += m.length - 1;
          run.source_step = -1;
        }
        runs.push_back(run);
      });
    }
  }
}

std::vector<Index> parts_giving(const AxisParts& source, const AxisWant& want) {
  if (source.replicated()) return {0};
  return source.parts_touching(want.source_interval(), want.sign * want.family.period, want.family.count);
}

Run AxisPiece::local_run() const noexcept {
  const SliceFamily& f = want.family;
  Run run{.length = want.upper - want.lower, .count = f.count};
  run.target = f.local + f.left + want.lower;
  run.target_pitch = f.pitch;
  if (kind == AxisPieceKind::replicated) {
    run.source = from_local;
    run.source_step = 0;
  } else {
    run.source = run.target;
    run.source_pitch = run.target_pitch;
  }
  return run;
}

std::vector<AxisPiece> resolve_edges(const AxisParts& target, const SliceFamily& family, Index lower, Index upper) {
  std::vector<AxisPiece> out;
  if (lower >= upper) return out;
  const Index start = family.start, extent = target.extent(), period = target.period();
  const Index x0 = start + lower;
  const Index x1 = start + (family.count - 1) * family.period + upper;
  auto given = [&](Index from, Index to, Index offset) {
    if (from < to) out.push_back({AxisPieceKind::given, {family, from - start, to - start, 1, offset}});
  };
  if (x0 >= 0 && x1 <= extent) {
    out.push_back({AxisPieceKind::given, {family, lower, upper}});
    return out;
  }
  TRANSHIP_ASSERT(family.count == 1);

  auto beyond = [&](Index from, Index to, EdgePolicy edge, Index edge_cell, Index local_cell) {
    if (from >= to) return;
    const Index local_zero = family.local + family.left - start;  // local index of cell x is local_zero + x
    AxisPiece piece{AxisPieceKind::zero, {family, from - start, to - start}};
    switch (edge) {
      case EdgePolicy::truncate:
      case EdgePolicy::open:
        return;
      case EdgePolicy::zero:
        break;
      case EdgePolicy::replicate:
        piece.kind = AxisPieceKind::replicated;
        piece.from_local = local_zero + edge_cell;
        break;
      case EdgePolicy::replicate_local:
        piece.kind = AxisPieceKind::replicated;
        piece.from_local = local_zero + local_cell;
        break;
      case EdgePolicy::toroidal:
        // Interfaces 0 and period are one: what lies to the left counts down from it, what lies to the right counts up.
        const Index shift = from >= extent && target.partition().points == Points::interfaces ? 1 : 0;
        for (Index x = from; x < to;) {
          const Index turn = floor_divide(x - shift, period);
          const Index begin = turn * period + shift, turns = x == begin ? (to - begin) / period : 0;
          const Index next = std::min(to, begin + period);
          if (turns > 1) {
            SliceFamily whole = family;
            whole.count = turns;
            whole.period = 0;
            whole.pitch = period;
            out.push_back({AxisPieceKind::given, {whole, x - start, next - start, 1, -turn * period}});
            x += turns * period;
          } else {
            given(x, next, -turn * period);
            x = next;
          }
        }
        return;
    }
    out.push_back(piece);
  };
  const Overlap& overlap = target.partition().overlap;
  beyond(x0, std::min<Index>(x1, 0), overlap.left.edge, 0, start);
  given(std::max<Index>(x0, 0), std::min(x1, extent), 0);
  beyond(std::max(x0, extent), x1, overlap.right.edge, extent - 1, start + family.length - 1);
  return out;
}

std::vector<AxisPiece> stored_pieces(const AxisParts& target, Index part) {
  std::vector<AxisPiece> out;
  for (const SliceFamily& f : target.stretches(part)) {
    const std::vector<AxisPiece> pieces = resolve_edges(target, f, -f.left, f.length + f.right);
    out.insert(out.end(), pieces.begin(), pieces.end());
  }
  return out;
}

}  // namespace tranship
