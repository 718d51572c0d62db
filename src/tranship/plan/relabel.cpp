#include "tranship/plan/relabel.hpp"

#include <algorithm>
#include <climits>
#include <limits>
#include <numeric>
#include <optional>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/axis_match.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {
namespace {

/// Cells that the parts of one dimension of the source give to those of the target.
class AxisTable {
 public:
  AxisTable(const AxisParts& source, const AxisParts& target)
      : replicated_(source.replicated()), parts_(replicated_ ? 1 : source.parts()) {
    cells_.assign(static_cast<std::size_t>(checked_multiply(parts_, target.parts())), 0);
    totals_.assign(static_cast<std::size_t>(target.parts()), 0);
    for (Index to = 0; to < target.parts(); ++to)
      for (const SliceFamily& family : target.stretches(to))
        for (const AxisPiece& piece : resolve_edges(target, family, -family.left, family.length + family.right)) {
          if (piece.kind != AxisPieceKind::given) continue;
          for (const Index from : parts_giving(source, piece.want)) {
            AxisEntry entry;
            append_runs(source, from, piece.want, entry);
            const Index cells = entry.cells();
            cells_[to * parts_ + from] += cells;
            totals_[to] += cells;
          }
        }
  }

  Index cells(Index from, Index to) const { return cells_[to * parts_ + (replicated_ ? 0 : from)]; }
  Index total(Index to) const { return totals_[to]; }

 private:
  bool replicated_;
  Index parts_;
  std::vector<Index> cells_;
  std::vector<Index> totals_;
};

/// What each rank of the target's grid, by ordinal, already holds of each of the target's parts.
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
  std::vector<std::optional<Place>> places;
  for (Index k = 0; k < held.parts; ++k) places.push_back(source.grid().place_of(target.grid().rank_at(k)));
  for (Index part = 0; part < held.parts; ++part) {
    const Indices to = target.grid().place_at(part).coordinates;
    Indices totals;
    for (int d = 0; d < dims; ++d) totals.push_back(tables[d].total(to[d]));
    held.wanted = checked_add(held.wanted, checked_product(totals));
    for (Index k = 0; k < held.parts; ++k) {
      if (!places[k]) continue;
      Index cells = 1;
      for (int d = 0; d < dims && cells > 0; ++d) cells *= tables[d].cells(places[k]->coordinates[d], to[d]);
      held.cells[part * held.parts + k] = cells;
    }
  }
  return held;
}

/// Where a side is indexed, the planner counts: ranks that are not in the source ask for the parts, so that all they
/// want comes from some rank.
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

/// The rank ordinal of every part. Rows are parts and columns are ranks; rows join one by one, each by the shortest
/// augmenting path under prices that keep every reduced cost at zero or above (Kuhn 1955; Jonker and Volgenant 1987).
/// The cost of a place is (cells that move there, whether the part is renamed), as one number of two digits.
std::vector<Index> assign(const Held& held) {
  using Cost = __int128;
  const Index n = held.parts;
  auto cost = [&](Index part, Index k) { return -Cost(held(part, k)) * (n + 1) + (part != k); };
  // Column n is where a row waits that has no rank yet.
  const Index none = -1, waiting = n;
  std::vector<Cost> row_price(n, 0), column_price(n + 1, 0), distance(n + 1);
  std::vector<Index> row_of(n + 1, none), previous(n + 1);
  std::vector<char> reached(n + 1);
  for (Index row = 0; row < n; ++row) {
    std::fill(distance.begin(), distance.end(), std::numeric_limits<Cost>::max());
    std::fill(reached.begin(), reached.end(), 0);
    row_of[waiting] = row;
    Index column = waiting;
    while (row_of[column] != none) {
      reached[column] = 1;
      const Index from = row_of[column];
      Index nearest = none;
      for (Index k = 0; k < n; ++k) {
        if (reached[k]) continue;
        const Cost reduced = cost(from, k) - row_price[from] - column_price[k];
        if (reduced < distance[k]) {
          distance[k] = reduced;
          previous[k] = column;
        }
        if (nearest == none || distance[k] < distance[nearest]) nearest = k;
      }
      const Cost step = distance[nearest];
      for (Index k = 0; k <= n; ++k) {
        if (reached[k]) {
          row_price[row_of[k]] += step;
          column_price[k] -= step;
        } else if (k < n) {
          distance[k] -= step;
        }
      }
      column = nearest;
    }
    while (column != waiting) {
      row_of[column] = row_of[previous[column]];
      column = previous[column];
    }
  }
  std::vector<Index> out(n);
  for (Index k = 0; k < n; ++k) out[row_of[k]] = k;
  return out;
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

  const std::vector<Index> places = assign(held);
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
