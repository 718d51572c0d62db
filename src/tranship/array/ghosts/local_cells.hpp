// Private: LocalCells, which finds the cells of an access in one rank's local array.
#pragma once

#include <deque>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/memory/region.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Finds the cells of one rank's part of an array. Caches the last few answers, because programs repeat their accesses.
class LocalCells {
 public:
  LocalCells(const ArraySpec& spec, Rank rank);

  /// Returns the depth of the deepest ghosts that any rank stores.
  Index depth_max() const noexcept { return depth_max_; }
  /// All global cells, or all ids.
  const Box& whole() const noexcept { return whole_; }

  struct Parts {
    Region owned;
    Region ghosts;    ///< ghosts that an exchange to this depth fills
    Region boundary;  ///< owned cells that it sends, to other ranks or across a periodic edge
  };
  /// `cells` are global; `depth` is at most depth_max(). The reference is valid until the next call.
  const Parts& parts(const Region& cells, Index depth);
  Region region_of(Cells which, const Region& cells, Index depth);

 private:
  struct Known {
    Region cells;
    Index depth;
    Parts parts;
  };

  const ArraySpec& spec_;
  Rank rank_;
  Index depth_max_ = 0;
  Box whole_;
  Region stored_;
  std::deque<Known> known_;
};

/// Returns a rank's part of the halo of one array that fills the ghosts of these global cells, to one depth in all
/// dimensions.
TransferPlan plan_ghosts(const ArraySpec& spec, Rank rank, const Region& cells, Index depth);

}  // namespace tranship
