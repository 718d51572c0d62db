// PartReader: the local array of any part of any layout, read out of a stored array as a redistribution moves it.
// Parts are what moves, not ranks: the ranks of either layout, which may be the same numbers, do not matter here.
#pragma once

#include <tranship/base/function_ref.hpp>
#include <tranship/file/part_store.hpp>

namespace tranship {

class PartReader {
 public:
  /// `source` must outlive the reader. Throws `mismatch` as check_fits does.
  PartReader(const StoredParts& source, const ArraySpec& wanted);

  /// Fills the local array of the part of `wanted` with this ordinal: its own cells and its overlap, of replicated
  /// sources from the first copy. Cells beyond an open edge are left alone. `moved` hears of the bytes as they arrive.
  void read(Index ordinal, const StridedView& target, FunctionRef<void(Index bytes)> moved) const;

 private:
  const StoredParts& source_;
  ArraySpec from_;
  ArraySpec to_;
};

}  // namespace tranship
