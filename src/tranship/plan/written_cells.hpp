// Private: Checks that the runs and lattices of a dimension write no cell twice. It uses closed forms for pairs of
// combs, so its time does not depend on the extent.
#pragma once

#include <vector>

#include <tranship/plan/runs.hpp>

namespace tranship {

/// Number of comparisons that a search may still make; a search that has none left finds nothing more.
struct ComparisonBudget {
  Index left = Index(1) << 22;
};

/// The cells that runs and lattices write along one dimension. Each run or lattice added must not contain a cell twice,
/// and must lie within the local indices of an array. Lattices are kept by reference.
class WrittenCells {
 public:
  void add(const Run& run);
  void add(const RunLattice& lattice);
  void add(const WrittenCells& other) { all_.insert(all_.end(), other.all_.begin(), other.all_.end()); }

  /// Returns true when some cell is written twice. It may wrongly return false when the budget runs out, or when combs
  /// that no planner makes have too many stretches to list.
  bool any_twice(ComparisonBudget& budget) const;

 private:
  class Search;

  /// `count` stretches of `length` cells, `pitch` >= 0 apart: the cells of a run, or the cells among which a lattice
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
