// Private: PartPlan, what one part of a layout takes from a stored array, as a redistribution moves it; made once for a
// part and clipped to each box of it. Parts are what moves, not ranks: the ranks of either layout, which may be the
// same numbers, do not matter here.
#pragma once

#include <vector>

#include <tranship/file/store/part_store.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Where the runs of an entry write.
struct EntryReach {
  Interval hull;
  /// Whether each run begins where the one before it has ended, or later: those that touch a box are found by halving.
  bool ascending = true;
};

struct PartPlan {
  /// Peers are ordinals of the source's parts. What lies beyond a replicating edge is received as well, from where its
  /// edge cell comes; no fills remain but zeros, which are whatever nothing is received for.
  TransferPlan moves;
  /// Belong to the one group of a structured part, by dimension and entry.
  std::vector<std::vector<EntryReach>> reaches;
  /// Where a part is given by lists: the dimensions after those that its cells count through.
  int trailing_dims = 0;
};

/// Appends the runs of an entry that write to an interval, clipped to it.
void clip(const AxisEntry& entry, const EntryReach& reach, const Interval& within, std::vector<Run>& out);

class PartPlanner {
 public:
  /// Throws `mismatch` as check_fits does.
  PartPlanner(const ArraySpec& source, const ArraySpec& wanted);

  /// The plan of the part of `wanted` with this ordinal: its own cells and its overlap, of replicated sources from the
  /// first copy.
  PartPlan plan(Index ordinal) const;

 private:
  ArraySpec from_;
  ArraySpec to_;
  Rank first_rank_;  // of the wanted parts
};

}  // namespace tranship
