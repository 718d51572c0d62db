// Distribution: where every cell of a global array is, given by a grid, partitions and a memory layout, or by lists of
// global ids.
//
// It is a value: it compares by content and needs no running world. Every answer is computed by arithmetic, or looked
// up in the lists of an indexed distribution. Next: plan/ turns two distributions into moves.
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

/// How a rank's local array lies in memory. Units are elements (for split complex: parts).
struct MemoryLayout {
  /// Dimensions from slowest to fastest; empty: row-major (the last dimension is fastest).
  Indices order = {};
  /// Explicit strides; empty: dense in `order`, stretched by `spacing` and padded by `align`.
  Indices strides = {};
  /// Each dimension's stride as a multiple of the space that the faster dimensions occupy; empty: 1.
  Indices spacing = {};
  /// The space that the faster dimensions occupy, with their own spacing and align, is rounded up to a multiple of this
  /// many elements, and then multiplied by `spacing`. It does not apply to the fastest dimension.
  Index align = 1;
  /// Elements left free before the first element.
  Index offset = 0;
  ComplexParts parts = ComplexParts::interleaved;

  friend bool operator==(const MemoryLayout&, const MemoryLayout&) = default;
};

/// A rank's local array: element (l0, l1, ...) lies `offset + l0*strides[0] + ...` elements after the start of an
/// allocation of `elements` elements. For split complex, each plane is an allocation of `elements` parts.
struct Storage {
  Indices extents;
  Indices strides;
  Index offset = 0;
  Index elements = 0;
  friend bool operator==(const Storage&, const Storage&) = default;
};

/// One slice of a rank's part and its view (DRI's view attributes). `owned` and `stored` are global boxes; `stored`
/// includes the overlap and may reach outside [0, extent). The view shows the cells of `stored`; `offset` counts
/// elements from the start of the allocation.
struct Slice {
  Box owned;
  Box stored;
  Index offset = 0;
  Indices extents;
  Indices strides;
};

/// One part of an indexed distribution: the global ids that it owns and those of which it keeps copies. Local memory
/// holds them in this order, owned before ghosts.
struct IndexedPart {
  std::vector<Index> owned;
  std::vector<Index> ghosts;
  friend bool operator==(const IndexedPart&, const IndexedPart&) = default;
};

/// A value that needs no running world: no call is collective or waits, and any thread may read it. A copy costs a few
/// allocations for the partitions; copies share the lists of an indexed distribution. The time of a call grows with the
/// dimensions and the families of slices, never with the extents. For an indexed distribution it grows at most with the
/// logarithm of a list, unless the call returns a list.
class Distribution {
 public:
  /// A structured distribution: `partitions[d]` cuts dimension d among the coordinates of grid axis d. Throws
  /// `invalid_use`, naming both numbers, when the arguments do not fit each other or when explicit strides make cells
  /// of a part overlap. Throws `overflow` for an extent above extent_max and when the cells that all ranks store do not
  /// fit in 63 bits.
  Distribution(const Indices& extents, Grid grid, std::vector<Partition> partitions, MemoryLayout memory = {});

  /// An indexed distribution (a star forest). The cells of the first `indexed_dims` dimensions have row-major global
  /// ids, and part i of the one-dimensional grid lists its own; the other dimensions are whole. Every id has at most
  /// one owner, and every ghost has exactly one; otherwise this throws `invalid_use`. Memory grows with the number of
  /// ids listed.
  static Distribution indexed(const Indices& extents, int indexed_dims, Grid grid, std::vector<IndexedPart> parts,
                              MemoryLayout memory = {});

  int dims() const noexcept { return extents_.size(); }
  const Indices& extents() const noexcept { return extents_; }
  const Grid& grid() const noexcept { return grid_; }
  const MemoryLayout& memory() const noexcept { return memory_; }
  bool is_indexed() const noexcept { return index_ != nullptr; }
  /// Returns the partition of one dimension; only for structured distributions.
  const AxisParts& axis(int d) const { return axes_[d]; }
  /// Returns true when some cell has several owners because of a whole grid axis or a replica axis.
  bool replicated() const noexcept;

  /// Returns the same parts on other ranks, listed by ordinal.
  Distribution on_ranks(std::vector<Rank> ranks) const;

  /// Returns the extents of a rank's local array, overlap included; all zero for a rank outside the grid. A part that
  /// owns nothing along one dimension stores no overlap there either: that extent is 0, and the others are unaffected.
  /// For an indexed distribution: the local number of ids, then the whole dimensions.
  Indices local_extents(Rank rank) const;
  /// Returns how the rank's local array lies in memory.
  Storage storage(Rank rank) const;
  /// Return the number of slices of a rank, and one slice. Slices are numbered row-major over the slices of each
  /// dimension.
  Index slice_count(Rank rank) const;
  Slice slice(Rank rank, Index number) const;
  std::vector<Slice> slices(Rank rank) const;

  /// Returns the rank that owns a cell: the first of several replicas, and the upper part for an interface between two
  /// parts. Returns -1 when no rank owns it, which only an indexed distribution allows.
  Rank owner(const Indices& cell) const;
  /// Returns all ranks that own a cell, in the order of their ordinals.
  std::vector<Rank> owners(const Indices& cell) const;
  /// Returns the local coordinates of a cell, or nothing if the rank does not own it.
  std::optional<Indices> local_of(Rank rank, const Indices& cell) const;
  /// The cell for which a local element stands (outside [0, extent) beyond an edge), and whether the rank owns it.
  struct Cell {
    Indices at;
    bool owned = false;
  };
  Cell cell_of(Rank rank, const Indices& local) const;

  // Only for indexed distributions.
  int indexed_dims() const noexcept;
  const IndexedPart& indexed_part(Index ordinal) const;
  /// Returns the number of ids: the product of the indexed extents.
  Index id_count() const;
  /// Ordinal of the owner and local index of an id; ordinal -1 if no part owns it.
  struct IdPlace {
    Index ordinal = -1;
    Index local = 0;
  };
  IdPlace place_of_id(Index id) const;
  /// Returns the places of the ghosts of an id, by ordinal.
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

/// A distribution with its element type. A layout text describes an ArraySpec.
struct ArraySpec {
  ElementType type = ElementType::f64;
  Distribution distribution;
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

}  // namespace tranship
