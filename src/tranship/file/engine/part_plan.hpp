// Private: PartPlan, the moves by which one part of a layout is redistributed from a stored array. It is made once per
// part and clipped to each box of it. It names parts and not ranks: the ranks of both layouts may be the same numbers,
// and do not matter here.
#pragma once

#include <vector>

#include <tranship/file/store/part_store.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// The interval to which the runs of an entry write.
struct EntryReach {
  Interval hull;
  /// True if each run begins at or after the end of the one before it, so that those that touch a box are found by
  /// bisection.
  bool ascending = true;
};

struct PartPlan {
  /// Peers are ordinals of the source's parts. Cells beyond a replicating edge are also received, from the part that
  /// has their edge cell. No fills remain except zeros, for cells that receive nothing.
  TransferPlan moves;
  /// Reach of each entry of the one group of a structured part, by dimension.
  std::vector<std::vector<EntryReach>> reaches;
  /// For a part that is given by lists: the dimensions behind those that its cells count through.
  int trailing_dims = 0;
};

/// Appends the runs of an entry that write to an interval, clipped to it.
void clip(const AxisEntry& entry, const EntryReach& reach, const Interval& within, std::vector<Run>& out);

class PartPlanner {
 public:
  /// Throws `mismatch` as check_fits does.
  PartPlanner(const ArraySpec& source, const ArraySpec& wanted);

  /// Returns the plan of the part of `wanted` with this ordinal: its own cells and its overlap. A replicated source is
  /// read from its first replica.
  PartPlan plan(Index ordinal) const;

 private:
  ArraySpec from_;
  ArraySpec to_;
  Rank first_rank_;  // of the wanted parts
};

}  // namespace tranship
