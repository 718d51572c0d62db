#include "tranship/plan/axis_match.hpp"

#include <algorithm>
#include <array>

#include <tranship/base/error.hpp>
#include <tranship/plan/comb.hpp>

namespace tranship {
namespace {

/// Members [first, first + count) of a comb of wanted intervals, and the cells of a slice, relative to its first, that
/// the members may take.
struct Offer {
  Index first;
  Index count;
  Interval cells;
};

/// Returns what a slice of the source offers to the slices of the target. Neighbouring parts also own the first and
/// last point of a slice of interfaces, and the nearest part gives them: below its last point a target slice reads such
/// a point from the part above, from its last point on from the part below. Member k of the target counts as beginning
/// at `begin` + k * period. Offers without members are empty.
std::array<Offer, 3> offers(const AxisParts& source, const SliceFamily& slice, Index begin, const SliceFamily& target) {
  if (source.partition().points != Points::interfaces) return {{{0, target.count, {0, slice.length}}}};
  const Index first = slice.start, last = slice.start + slice.length - 1;
  const Index turn = begin + std::max<Index>(target.length - 1, 1);  // member 0: the part below gives points from here
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

/// Returns true if a lattice should replace the runs in which two combs meet.
bool is_worth_it(const RunLattice& lattice) {
  const LocalComb &a = lattice.source, &b = lattice.target;
  if (std::max(a.count, b.count) < lattice_runs_min || a.length + b.length <= lattice_runs_min) return false;
  if (a.period < a.length || b.period < b.length) return false;
  const Index distances = lattice.distances();
  if (distances < lattice_runs_min || !lattice.is_sound()) return false;
  const Index stretches = lattice.stretches();
  return stretches >= lattice_runs_min &&
         (distances >= lattice_distances_min || stretches <= lattice_repeats_max * distances);
}

}  // namespace

Interval AxisWant::source_interval() const noexcept {
  const Index x0 = family.start + lower, x1 = family.start + upper;
  return sign > 0 ? Interval{x0 + offset, x1 + offset} : Interval{offset - x1 + 1, offset - x0 + 1};
}

void append_runs(const AxisParts& source, Index part, const AxisWant& want, AxisEntry& entry) {
  const SliceFamily& target = want.family;
  // The last slice of a mirrored family comes first in the source. In that order, wanted intervals and slices begin at:
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
      const RunLattice lattice{{slice.local + slice.left + offer.cells.lower, a.length, a.period, slice.pitch, a.count},
                               {target.local + target.left + offer.first * target.pitch + want.lower, b.length,
                                b.period, target.pitch, b.count},
                               b.start - a.start};
      if (want.sign > 0 && is_worth_it(lattice)) {
        entry.lattices.push_back(lattice);
        continue;
      }
      meet(a, b, [&](const CombMeeting& m) {
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
        entry.runs.push_back(run);
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
        // Interfaces 0 and `period` are the same point. On the left, coordinates count down from it; on the right, up.
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
