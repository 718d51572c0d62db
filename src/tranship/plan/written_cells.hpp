// Private: Whether the runs and lattices of a dimension write no cell twice. Judged by closed forms for pairs of combs,
// so that it takes the same time for any extent.
#pragma once

#include <vector>

#include <tranship/plan/runs.hpp>

namespace tranship {

/// The comparisons that a search may spend; one that has none left finds nothing more.
struct ComparisonBudget {
  Index left = Index(1) << 22;
};

/// What runs and lattices write along one dimension. Those that are added must have no cell twice in themselves, and
/// lie within the local indices of an array. Lattices are kept by reference.
class WrittenCells {
 public:
  void add(const Run& run);
  void add(const RunLattice& lattice);
  void add(const WrittenCells& other) { all_.insert(all_.end(), other.all_.begin(), other.all_.end()); }

  /// Returns true when some cell is written twice. Where the budget does not suffice, or combs are such as no planner
  /// makes and have too many stretches to list, it may return false instead.
  bool any_twice(ComparisonBudget& budget) const;

 private:
  class Search;

  /// `count` stretches of `length` cells, `pitch` >= 0 apart: the cells of a run, or those among which a lattice
  /// writes.
  struct Stretches {
    Index start = 0;
    Index length = 0;
    Index pitch = 0;
    Index count = 1;
    const RunLattice* lattice = nullptr;

    Index end() const { return start + (count - 1) * pitch + length; }
  };
  std::vector<Stretches> all_;
};

}  // namespace tranship
