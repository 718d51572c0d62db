#include "tranship/plan/relabel.hpp"

#include <algorithm>
#include <climits>
#include <numeric>
#include <optional>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/assignment.hpp>
#include <tranship/plan/axis_match.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {
namespace {

/// The number of cells that each part of one dimension of the source gives to each part of the target.
class AxisTable {
 public:
  AxisTable(const AxisParts& source, const AxisParts& target)
      : source_(source), parts_(source.replicated() ? 1 : source.parts()) {
    cells_.assign(static_cast<std::size_t>(checked_multiply(parts_, target.parts())), 0);
    totals_.assign(static_cast<std::size_t>(target.parts()), 0);
    for (Index part = 0; part < parts_ && parts_ > 1 && !source.is_dealt(); ++part) {
      const std::vector<SliceFamily> slices = source.slices(part);
      blocks_.push_back(slices.empty() ? Interval{} : Interval{slices[0].start, slices[0].start + slices[0].length});
    }
    for (Index to = 0; to < target.parts(); ++to) {
      Index* const row = cells_.data() + to * parts_;
      for (const AxisPiece& piece : stored_pieces(target, to))
        if (piece.kind == AxisPieceKind::given) add(piece.want, row);
      totals_[to] = std::accumulate(row, row + parts_, Index(0));
    }
  }

  /// Returns what each part of the source gives to one part of the target.
  const Index* row(Index to) const { return cells_.data() + to * parts_; }
  Index parts() const { return parts_; }
  Index total(Index to) const { return totals_[to]; }

 private:
  void add(const AxisWant& want, Index* row) const {
    const SliceFamily& family = want.family;
    const Interval first = want.source_interval();
    if (parts_ == 1) {
      row[0] += first.length() * family.count;
    } else if (source_.partition().points == Points::interfaces) {
      for (const Index from : parts_giving(source_, want)) row[from] += matched(want, from);
    } else if (!source_.is_dealt()) {
      for (const Index from : parts_giving(source_, want)) {
        const Interval& block = blocks_[std::size_t(from)];
        row[from] += wanted_below(want, block.upper) - wanted_below(want, block.lower);
      }
    } else {
      add_dealt(first, family.period, family.count, want, row);
    }
  }

  /// Returns the cells below `cell` of the source in all wanted intervals together.
  static Index wanted_below(const AxisWant& want, Index cell) {
    const Interval first = want.source_interval();
    const Index length = first.length(), period = want.family.period, count = want.family.count;
    if (cell <= first.lower) return 0;
    if (period == 0) return std::min(cell - first.lower, length) * count;
    const Index begun = std::min(count, (cell - first.lower - 1) / period + 1);
    // Intervals may overlap. Those that end at or below the cell count in full.
    const Index ended = cell < first.upper ? 0 : std::min(begun, (cell - first.upper) / period + 1);
    const Index cut = begun - ended, longest = cell - first.lower - ended * period;
    return ended * length + cut * longest - period * (cut * (cut - 1) / 2);
  }

  /// The positions of the intervals in a turn of the source's parts repeat, so intervals with equal position are
  /// counted at once. With too many positions, closed forms for every pair of parts are faster.
  void add_dealt(Interval first, Index period, Index count, const AxisWant& want, Index* row) const {
    const Index size = source_.partition().block_size, turn = size * parts_;
    const Index places = period == 0 ? 1 : std::min(count, turn / std::gcd(turn, period));
    const Index blocks = std::min(first.length(), turn) / size + 2;
    if (places > closed_form_steps * parts_ / blocks) {
      for (const Index from : parts_giving(source_, want)) row[from] += matched(want, from);
      return;
    }
    for (Index k = 0; k < places; ++k) {
      const Index times = period == 0 ? count : (count - 1 - k) / places + 1;
      Index at = first.lower + k * period, left = first.length();
      if (const Index turns = left / turn; turns > 0) {
        for (Index from = 0; from < parts_; ++from) row[from] += times * turns * size;
        left -= turns * turn;
      }
      for (Index block = at / size; left > 0; ++block) {
        const Index cells = std::min(left, (block + 1) * size - at);
        row[block % parts_] += times * cells;
        at += cells;
        left -= cells;
      }
    }
  }

  /// Counts the cells of a pair of parts as the planner matches them.
  Index matched(const AxisWant& want, Index from) const {
    AxisEntry entry;
    append_runs(source_, from, want, entry);
    return entry.cells();
  }

  /// Blocks that can be visited in the time of one matched pair.
  static constexpr Index closed_form_steps = 256;

  const AxisParts& source_;
  Index parts_;
  std::vector<Interval> blocks_;  ///< of parts that have at most one slice
  std::vector<Index> cells_;
  std::vector<Index> totals_;
};

/// The cells of each part of the target that each rank of the target's grid, by ordinal, already holds.
struct Held {
  Index parts = 0;
  std::vector<Index> cells;  ///< [part * parts + ordinal of the rank]
  Index wanted = 0;          ///< cells that all parts want together

  explicit Held(Index size) : parts(size), cells(static_cast<std::size_t>(size * size), 0) {}
  Index operator()(Index part, Index rank_ordinal) const { return cells[part * parts + rank_ordinal]; }
};

Held held_structured(const Distribution& source, const Distribution& target) {
  const int dims = target.dims();
  std::vector<AxisTable> tables;
  for (int d = 0; d < dims; ++d) tables.emplace_back(source.axis(d), target.axis(d));
  Held held(target.grid().size());
  // Ranks of the target that are also in the source, and per dimension the source part that they hold.
  std::vector<Index> holders;
  std::vector<std::vector<Index>> holding(static_cast<std::size_t>(dims));
  for (Index k = 0; k < held.parts; ++k) {
    const std::optional<Place> place = source.grid().place_of(target.grid().rank_at(k));
    if (!place) continue;
    holders.push_back(k);
    for (int d = 0; d < dims; ++d) holding[d].push_back(tables[d].parts() == 1 ? 0 : place->coordinates[d]);
  }
  std::vector<Index> cells(holders.size());
  for (Index part = 0; part < held.parts; ++part) {
    const Indices to = target.grid().place_at(part).coordinates;
    Indices totals;
    for (int d = 0; d < dims; ++d) totals.push_back(tables[d].total(to[d]));
    held.wanted = checked_add(held.wanted, checked_product(totals));
    std::fill(cells.begin(), cells.end(), 1);
    for (int d = 0; d < dims; ++d) {
      const Index* const row = tables[d].row(to[d]);
      for (std::size_t h = 0; h < cells.size(); ++h) cells[h] *= row[holding[d][h]];
    }
    for (std::size_t h = 0; h < cells.size(); ++h) held.cells[part * held.parts + holders[h]] = cells[h];
  }
  return held;
}

/// If a side is indexed, the planner counts: ranks outside the source ask for the parts, so all that they want comes
/// from other ranks.
Held held_indexed(const Distribution& source, const Distribution& target) {
  Held held(target.grid().size());
  const Rank first = std::max(source.grid().world_size_min(), target.grid().world_size_min());
  if (Index(first) + held.parts > INT_MAX)
    throw_error(ErrorCode::unsupported, "relabelling needs {} above rank {}; the largest rank is {}",
                amount(held.parts, "unused rank"), first, INT_MAX - 1);
  std::vector<Rank> strangers(static_cast<std::size_t>(held.parts));
  std::iota(strangers.begin(), strangers.end(), first);
  const ArraySpec from{ElementType::u8, source}, to{ElementType::u8, target.on_ranks(strangers)};
  for (Index part = 0; part < held.parts; ++part)
    for (const IndexedTransfer& list : plan_redistribution(from, to, strangers[part]).indexed_receives) {
      const Index cells = checked_multiply(Index(list.target_cells.size()), list.inner);
      held.wanted = checked_add(held.wanted, cells);
      if (const std::optional<Index> k = target.grid().ordinal_of(list.peer))
        held.cells[part * held.parts + *k] += cells;
    }
  return held;
}

}  // namespace

Relabelled relabel(const Distribution& source, const Distribution& target) {
  if (!(source.extents() == target.extents()))
    throw_error(ErrorCode::mismatch, "the source has extents [{}], the target [{}]", to_string(source.extents()),
                to_string(target.extents()));
  const Index parts = target.grid().size();
  if (parts > relabel_parts_max)
    throw_error(ErrorCode::unsupported, "relabelling {}; at most {} are supported", amount(parts, "part"),
                relabel_parts_max);
  const bool indexed = source.is_indexed() || target.is_indexed();
  const Held held = indexed ? held_indexed(source, target) : held_structured(source, target);

  const std::vector<Index> places = best_assignment(held.cells, parts);
  Index stays = 0, stayed = 0;
  std::vector<Rank> ranks(static_cast<std::size_t>(parts));
  for (Index part = 0; part < parts; ++part) {
    ranks[part] = target.grid().rank_at(places[part]);
    stays += held(part, places[part]);
    stayed += held(part, part);
  }
  return {target.on_ranks(std::move(ranks)), held.wanted - stays, held.wanted - stayed};
}

}  // namespace tranship
