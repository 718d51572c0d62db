// Private: StridedSource, parts that are dense arrays in files. What is long on both sides is read straight to where it
// belongs; short rows are read together through the window of the scratch, as far as the layouts allow; what is too
// short and too sparse for that is taken from what FileSet::map gives. Moves name bytes of the file: it is the slot of
// the source, and only what is mapped of it has an address.
#pragma once

#include <tranship/file/store/part_source.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

class StridedSource final : public PartSource {
 public:
  /// Of an array that outlives it.
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

/// What reads an array that outlives it: the array's own source, or its parts as they lie in its files.
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
