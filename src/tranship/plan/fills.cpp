#include "tranship/plan/fills.hpp"

#include <algorithm>
#include <map>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/plan/run_intervals.hpp>

namespace tranship {
namespace {

std::vector<Run> local_runs(const std::vector<AxisPiece>& pieces, unsigned kinds) {
  std::vector<Run> out;
  for (const AxisPiece& piece : pieces)
    if (kinds >> int(piece.kind) & 1) out.push_back(piece.local_run());
  return out;
}

constexpr unsigned bit(AxisPieceKind kind) {
  return 1u << int(kind);
}

}  // namespace

void append_fills(int slot, const std::vector<std::vector<AxisPiece>>& pieces, std::vector<LocalFill>& fills) {
  const int dims = int(pieces.size());
  const unsigned given = bit(AxisPieceKind::given), zero = bit(AxisPieceKind::zero),
                 replicated = bit(AxisPieceKind::replicated);
  // Dimension k is the first of its kind; the dimensions before it exclude that kind, so no cell is filled twice.
  auto append = [&](LocalFillKind kind, unsigned before, unsigned own, unsigned after) {
    for (int k = 0; k < dims; ++k) {
      LocalFill fill{.kind = kind, .slot = slot};
      bool empty = false;
      for (int d = 0; d < dims; ++d) {
        fill.axes.push_back(local_runs(pieces[d], d < k ? before : d == k ? own : after));
        empty |= fill.axes.back().empty();
      }
      if (!empty) fills.push_back(std::move(fill));
    }
  };
  append(LocalFillKind::zero, given | replicated, zero, given | replicated | zero);
  append(LocalFillKind::replicate, given, replicated, given | replicated);
}

namespace {

/// A product of intervals, one list per dimension.
using Product = std::vector<std::vector<Interval>>;

bool contains(const std::vector<Interval>& ascending, Index cell) {
  const auto after = std::upper_bound(ascending.begin(), ascending.end(), cell,
                                      [](Index c, const Interval& one) { return c < one.lower; });
  return after != ascending.begin() && std::prev(after)->contains(cell);
}

/// Returns the cells that a plan writes into one slot.
std::vector<Product> written_products(const TransferPlan& plan, int slot) {
  std::vector<Product> out;
  for (const TransferGroup& group : plan.receives) {
    if (group.target_slot != slot) continue;
    Product& product = out.emplace_back(group.target_dims.size());
    for (std::size_t k = 0; k < group.axes.size(); ++k) {
      std::vector<Run> runs;
      for (const AxisEntry& entry : group.axes[k]) entry.for_each_run([&](const Run& run) { runs.push_back(run); });
      product[std::size_t(group.target_dims[k])] = intervals_of(runs, RunEnd::target);
    }
  }
  for (const LocalFill& fill : plan.fills_after) {
    if (fill.slot != slot) continue;
    Product& product = out.emplace_back();
    for (const std::vector<Run>& runs : fill.axes) product.push_back(intervals_of(runs, RunEnd::target));
  }
  return out;
}

/// Calls f with the pieces of a run whose sources lie between neighbouring `bounds`, which are in increasing order.
void for_each_piece(const Run& run, const std::vector<Index>& bounds, FunctionRef<void(const Run&)> f) {
  for (Index k = 0; k < run.count; ++k)
    for (Index done = 0; done < run.length;) {
      const Index at = run.source + k * run.source_pitch + done * run.source_step;
      const auto above = std::upper_bound(bounds.begin(), bounds.end(), at);
      Index cells = run.length - done;
      if (run.source_step > 0 && above != bounds.end())
        cells = std::min(cells, ceil_divide(*above - at, run.source_step));
      if (run.source_step < 0 && above != bounds.begin())
        cells = std::min(cells, (at - *std::prev(above)) / -run.source_step + 1);
      f({.source = at,
         .target = run.target + k * run.target_pitch + done * run.target_step,
         .length = cells,
         .source_step = run.source_step,
         .target_step = run.target_step});
      done += cells;
    }
}

}  // namespace

FillsBySource fills_by_source(const TransferPlan& plan) {
  FillsBySource out;
  std::map<int, std::vector<Product>> written;
  for (const LocalFill& fill : plan.fills_after) {
    if (fill.kind != LocalFillKind::replicate) {
      out.of_written.push_back(fill);
      continue;
    }
    const auto [at, is_new] = written.try_emplace(fill.slot);
    if (is_new) at->second = written_products(plan, fill.slot);
    const std::vector<Product>& products = at->second;
    // Runs that belong to the same products along a dimension stay together.
    std::vector<std::vector<std::pair<std::vector<bool>, std::vector<Run>>>> parts;
    Indices counts;
    for (std::size_t d = 0; d < fill.axes.size(); ++d) {
      std::vector<Index> bounds;
      for (const Product& product : products)
        for (const Interval& one : product[d]) bounds.insert(bounds.end(), {one.lower, one.upper});
      std::sort(bounds.begin(), bounds.end());
      std::map<std::vector<bool>, std::vector<Run>> by_products;
      for (const Run& run : fill.axes[d])
        for_each_piece(run, bounds, [&](const Run& piece) {
          std::vector<bool> having;
          for (const Product& product : products) having.push_back(contains(product[d], piece.source));
          by_products[std::move(having)].push_back(piece);
        });
      parts.emplace_back(by_products.begin(), by_products.end());
      counts.push_back(Index(parts.back().size()));
    }
    for_each_coordinate(counts, [&](const Indices& at) {
      LocalFill cut{.kind = fill.kind, .combine = fill.combine, .slot = fill.slot};
      for (int d = 0; d < counts.size(); ++d) cut.axes.push_back(parts[std::size_t(d)][std::size_t(at[d])].second);
      bool is_written = false;
      for (std::size_t p = 0; p < products.size() && !is_written; ++p) {
        is_written = true;
        for (int d = 0; d < counts.size(); ++d) is_written &= parts[std::size_t(d)][std::size_t(at[d])].first[p];
      }
      (is_written ? out.of_written : out.of_kept).push_back(std::move(cut));
    });
  }
  return out;
}

}  // namespace tranship
