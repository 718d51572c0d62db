// Private: StridedSource, parts that are dense arrays in files. Rows that are long on both sides are read straight to
// their targets. Short rows are read together through the window of the scratch, as far as the layouts allow. Rows that
// are too short and too sparse for that are copied from a mapping (FileSet::map). Moves name bytes of the file: the
// file is the slot of the source, and only its mapped bytes have addresses.
#pragma once

#include <tranship/file/store/part_source.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

class StridedSource final : public PartSource {
 public:
  /// The array must outlive this object.
  explicit StridedSource(const StoredParts& array) : array_(array) {}

  Indices extents(Index part) const override { return array_.parts[part].extents; }
  void read(Index part, const Box& box, const StridedView& target, ReadScratch& scratch) const override;
  void read_runs(Index part, const TransferGroup& cells, const StridedView& target,
                 ReadScratch& scratch) const override;
  void read_listed(Index part, const IndexedTransfer& cells, const Box& trailing, const StridedView& target,
                   ReadScratch& scratch) const override;

 private:
  const StoredParts& array_;
};

/// The source of an array: its own, or a StridedSource of its files. The array must outlive it.
class SourceOf {
 public:
  explicit SourceOf(const StoredParts& array) : strided_(array), own_(array.source.get()) {}

  const PartSource& operator*() const noexcept { return own_ ? *own_ : strided_; }
  const PartSource* operator->() const noexcept { return &**this; }

 private:
  StridedSource strided_;
  const PartSource* own_;
};

}  // namespace tranship
