// Distribution: where every cell of a global array is: grid x partitions x memory layout, or lists of global ids.
//
// A value, equal by content, independent of any running world; every question is answered from arithmetic alone (of an
// indexed distribution: from its lists). Next: plan/ turns two distributions into moves.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tranship/base/element_type.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/layout/grid.hpp>
#include <tranship/layout/partition.hpp>

namespace tranship {

enum class ComplexParts : std::uint8_t {
  interleaved,  ///< real and imaginary part side by side, one element
  split,        ///< two planes, each laid out like an array of parts
};

/// How a rank's local array lies in memory. Units are elements (of split complex: parts).
struct MemoryLayout {
  /// Dimensions from slowest to fastest; empty: row-major (the last dimension fastest).
  Indices order = {};
  /// Explicit strides; empty: dense in `order`, stretched by `spacing` and padded by `align`.
  Indices strides = {};
  /// Each dimension's stride as a multiple of the space that the faster ones take; empty: 1.
  Indices spacing = {};
  /// The space that the faster dimensions take, theirs of spacing and align included, is rounded up to a multiple of so
  /// many elements before `spacing` multiplies it. The fastest dimension has no such space.
  Index align = 1;
  /// Elements left free before the first one.
  Index offset = 0;
  ComplexParts parts = ComplexParts::interleaved;

  friend bool operator==(const MemoryLayout&, const MemoryLayout&) = default;
};

/// A rank's local array: element (l0, l1, ...) lies `offset + l0*strides[0] + ...` elements after the start of an
/// allocation of `elements` elements (of split complex: so many parts in each plane).
struct Storage {
  Indices extents;
  Indices strides;
  Index offset = 0;
  Index elements = 0;
  friend bool operator==(const Storage&, const Storage&) = default;
};

/// One slice of a rank's part and its view: what DRI calls view attributes. `owned` and `stored` are global; `stored`
/// includes the overlap and may reach beyond [0, extent). The view's cells are those of `stored`; `offset` counts
/// elements from the start of the allocation.
struct Slice {
  Box owned;
  Box stored;
  Index offset = 0;
  Indices extents;
  Indices strides;
};

/// One part of an indexed distribution: the global ids that a rank owns and those that it keeps copies of. They lie in
/// local memory in this order, owned before ghosts.
struct IndexedPart {
  std::vector<Index> owned;
  std::vector<Index> ghosts;
  friend bool operator==(const IndexedPart&, const IndexedPart&) = default;
};

/// A value that knows no running world: nothing here is collective or waits, and any thread may read it. Copies cost a
/// few allocations for the partitions; the lists of an indexed distribution are shared. A question takes time in
/// proportion to the dimensions and families of slices, never to the extents; of an indexed distribution at most to the
/// logarithm of a list, unless it returns one.
class Distribution {
 public:
  /// A structured distribution: `partitions[d]` cuts dimension d among the coordinates of grid axis d. Throws
  /// `invalid_use` naming both numbers when they do not fit or when explicit strides make cells of some part overlap,
  /// `overflow` for an extent above extent_max and when the cells that all ranks store do not fit in 63 bits.
  Distribution(const Indices& extents, Grid grid, std::vector<Partition> partitions, MemoryLayout memory = {});

  /// An indexed distribution (a star forest): the cells of the first `indexed_dims` dimensions are numbered row-major
  /// by global ids, and part i of the one-dimensional grid lists its own; the remaining dimensions are whole. Every id
  /// has at most one owner and every ghost has one. Costs memory in proportion to the ids that are listed.
  static Distribution indexed(const Indices& extents, int indexed_dims, Grid grid, std::vector<IndexedPart> parts,
                              MemoryLayout memory = {});

  int dims() const noexcept { return extents_.size(); }
  const Indices& extents() const noexcept { return extents_; }
  const Grid& grid() const noexcept { return grid_; }
  const MemoryLayout& memory() const noexcept { return memory_; }
  bool is_indexed() const noexcept { return index_ != nullptr; }
  /// The partition of one dimension (structured only).
  const AxisParts& axis(int d) const { return axes_[d]; }
  /// Whether some cell is owned by more than one rank because a whole grid axis or a replica axis says so.
  bool replicated() const noexcept;

  /// The same parts held by other ranks, by ordinal.
  Distribution on_ranks(std::vector<Rank> ranks) const;

  /// Extents of a rank's local array, overlap included; all zero for a rank that is not in the grid. A part that owns
  /// nothing along one dimension stores no overlap there either: its extent is 0 there, and in the other dimensions
  /// what it would be otherwise. For an indexed distribution: the local count of ids, then the whole dimensions.
  Indices local_extents(Rank rank) const;
  /// How the rank's local array lies in memory.
  Storage storage(Rank rank) const;
  /// The number of slices of a rank, and one of them; slices are numbered row-major over the slices of each dimension.
  Index slice_count(Rank rank) const;
  Slice slice(Rank rank, Index number) const;
  std::vector<Slice> slices(Rank rank) const;

  /// The rank that owns a cell: of replicas the first, of an interface between two parts the upper one. -1 when no rank
  /// does (possible for indexed distributions only).
  Rank owner(const Indices& cell) const;
  /// All ranks that own a cell, ascending by ordinal.
  std::vector<Rank> owners(const Indices& cell) const;
  /// Local coordinates of a cell that the rank owns; empty when it does not.
  std::optional<Indices> local_of(Rank rank, const Indices& cell) const;
  /// The cell that a local element stands for (beyond the edge: outside [0, extent)) and whether the rank owns it.
  struct Cell {
    Indices at;
    bool owned = false;
  };
  Cell cell_of(Rank rank, const Indices& local) const;

  // Only indexed distributions have these.
  int indexed_dims() const noexcept;
  const IndexedPart& indexed_part(Index ordinal) const;
  /// Number of ids: the product of the indexed extents.
  Index id_count() const;
  /// Owner ordinal and local index of an id; ordinal -1 when no part owns it.
  struct IdPlace {
    Index ordinal = -1;
    Index local = 0;
  };
  IdPlace place_of_id(Index id) const;
  /// Where ghosts of an id lie, by ordinal.
  std::span<const IdPlace> ghosts_of_id(Index id) const;

  /// Equality by content.
  friend bool operator==(const Distribution& a, const Distribution& b);

 private:
  struct IndexLists;

  Distribution() = default;

  Indices extents_;
  Grid grid_;
  MemoryLayout memory_;
  std::vector<AxisParts> axes_;
  std::shared_ptr<const IndexLists> index_;
};

/// Shorthand: `distribution({8192, 8192}, grid(4, 1), {block(), whole()})`.
inline Distribution distribution(const Indices& extents, Grid grid, std::vector<Partition> partitions,
                                 MemoryLayout memory = {}) {
  return Distribution(extents, std::move(grid), std::move(partitions), std::move(memory));
}

/// A distribution with its element type: what a layout text describes.
struct ArraySpec {
  ElementType type = ElementType::f64;
  Distribution distribution;
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

}  // namespace tranship
