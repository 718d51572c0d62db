// Detail: The moves along one dimension: runs, and lattices of runs.
//
// Two families whose periods share few factors meet in as many runs as their stretches have distances. Together these
// runs are a lattice. The stretch that follows another depends only on the distance, by one of three steps (the
// three-gap theorem; Sós 1958). So a lattice is stored as its two families and walked where it is needed.
#pragma once

#include <algorithm>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

/// `count` stretches of `length` cells along one dimension, in local indices of both sides. Cell i of repeat k is read
/// at source + k*source_pitch + i*source_step and written at target + k*target_pitch + i*target_step.
struct Run {
  Index source = 0;
  Index target = 0;
  Index length = 0;
  Index count = 1;
  Index source_step = 1;
  Index target_step = 1;
  Index source_pitch = 0;
  Index target_pitch = 0;

  Index cells() const noexcept { return length * count; }
  friend bool operator==(const Run&, const Run&) = default;
};

/// `count` stretches of `length` cells of one part, `period` apart in the array and `pitch` apart in the local array.
struct LocalComb {
  Index start = 0;  ///< local index of the first cell
  Index length = 0;
  Index period = 0;
  Index pitch = 0;
  Index count = 0;
  friend bool operator==(const LocalComb&, const LocalComb&) = default;
};

/// The common cells of two combs. Neither comb contains a cell twice, so the stretches have the same order in the array
/// and in both local arrays.
struct RunLattice {
  LocalComb source;
  LocalComb target;
  Index distance = 0;  ///< in the array, from the first cell of `source` to the first cell of `target`

  /// Returns true when neither comb contains a cell twice, no sum overflows, and the number of distances is within its
  /// limits. All other members require it.
  bool is_sound() const noexcept;
  /// Returns the number of distances at which two stretches touch: an upper bound on the runs.
  Index distances() const noexcept;
  /// Return the number of cells and of stretches, in logarithmic time.
  Index cells() const noexcept;
  Index stretches() const noexcept;
  /// Returns the stretches of at most `length` cells and the cells in them, in logarithmic time.
  struct Share {
    Index stretches = 0;
    Index cells = 0;
  };
  Share up_to(Index length) const noexcept;
  /// Calls `f` with the same cells as runs, distance by distance; at most distances() calls.
  void for_each_run(FunctionRef<void(const Run&)> f) const;

  friend bool operator==(const RunLattice&, const RunLattice&) = default;
};

/// A lattice replaces this many runs or more, unless each run has many stretches: these have one length, so they are
/// copied faster (by a fifth if they are short), which soon pays for setting them up. A plan has room for such runs if
/// there are fewer than lattice_distances_min.
inline constexpr Index lattice_runs_min = 32;
inline constexpr Index lattice_repeats_max = 8;
inline constexpr Index lattice_distances_min = 1024;
/// Keeps loops over all distances (for_each_run) short.
inline constexpr Index lattice_distances_max = Index(1) << 22;

/// Visits the stretches of a lattice in their order. Each step takes constant time, the first one logarithmic time.
class LatticeWalk {
 public:
  /// Visits the stretches that lie in the stretches [first, end) of the target's comb.
  LatticeWalk(const RunLattice& lattice, Index first, Index end);
  explicit LatticeWalk(const RunLattice& lattice) : LatticeWalk(lattice, 0, lattice.target.count) {}

  bool is_over() const noexcept { return target_ >= end_ || source_ >= lattice_.source.count; }
  Index source() const noexcept {
    return lattice_.source.start + source_ * lattice_.source.pitch + std::max<Index>(delta_, 0);
  }
  Index target() const noexcept {
    return lattice_.target.start + target_ * lattice_.target.pitch + std::max<Index>(-delta_, 0);
  }
  Index length() const noexcept {
    return std::min(lattice_.source.length - std::max<Index>(delta_, 0),
                    lattice_.target.length - std::max<Index>(-delta_, 0));
  }
  Run run() const noexcept { return {.source = source(), .target = target(), .length = length()}; }
  void next() noexcept;

 private:
  /// The difference between one pair of stretches and another.
  struct Step {
    Index source = 0;
    Index target = 0;
    Index delta = 0;
  };
  void take(const Step& step) noexcept;

  RunLattice lattice_;
  Index end_;
  Step up_;    ///< the shortest step that does not decrease the distance
  Step down_;  ///< the shortest step that decreases it
  bool up_first_ = false;
  Index source_ = 0;
  Index target_ = 0;
  Index delta_ = 0;  ///< from the stretch of the source to the stretch of the target
};

/// The cells that one coordinate of the peers' grid axis gives or takes along one dimension: first the runs, then the
/// stretches of the lattices.
struct AxisEntry {
  Index peer = 0;
  std::vector<Run> runs;
  std::vector<RunLattice> lattices;

  bool is_empty() const noexcept { return runs.empty() && lattices.empty(); }
  Index cells() const noexcept;
  /// Calls f with the runs, then with the runs of the lattices.
  void for_each_run(FunctionRef<void(const Run&)> f) const;
  friend bool operator==(const AxisEntry&, const AxisEntry&) = default;
};

}  // namespace tranship
