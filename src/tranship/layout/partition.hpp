// Detail: Partition and AxisParts, how one dimension is cut among the coordinates of one grid axis, and what each part
// stores beyond its own cells.
//
// A Partition is the rule; an AxisParts is the rule applied to an extent and a number of parts. It answers in families:
// all slices of a part with equal lengths and overlap, one period apart, are one SliceFamily. So nothing here grows
// with the extent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/index_map.hpp>

namespace tranship {

/// The largest extent, 4,611,686,018,427,387,903. It also limits the cells that all parts of a dimension store
/// together, copies and overlap included, so that the sum of two such numbers fits in 63 bits.
inline constexpr Index extent_max = (Index(1) << 62) - 1;

/// The contents of the overlap of a slice where it reaches beyond the array.
enum class EdgePolicy : std::uint8_t {
  truncate,         ///< nothing: the overlap ends at the edge, and no cell is stored beyond it
  toroidal,         ///< the cells from the other end: the dimension is periodic
  zero,             ///< zeros
  replicate,        ///< the value of the first or last cell of the array
  replicate_local,  ///< the value of the first or last cell that the slice owns
  open,             ///< stored, but never written by tranship: the user fills it, or a Tiling continues the array there
};

/// Which parts get the remainder when the cells do not divide evenly into blocks.
enum class Remainder : std::uint8_t {
  low,   ///< one more cell (or unit of `modulo`) for each of the first parts: balanced, the default
  high,  ///< one more for each of the last parts
  ceil,  ///< blocks of ceil(extent / parts); the last parts may be short or empty (HPF, ScaLAPACK, FFTW)
};

enum class PartitionKind : std::uint8_t { whole, block, cyclic, irregular };

struct OverlapSide {
  Index width = 0;
  EdgePolicy edge = EdgePolicy::truncate;
  friend bool operator==(const OverlapSide&, const OverlapSide&) = default;
};

/// Extra cells that every slice stores to the left and to the right of those it owns. It may be wider than a
/// neighbour's whole block. In a cyclic partition every slice has it.
struct Overlap {
  OverlapSide left;
  OverlapSide right;
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

struct Partition {
  PartitionKind kind = PartitionKind::whole;
  Remainder remainder = Remainder::low;
  Index block_size = 0;       ///< cyclic: cells per block
  std::vector<Index> bounds;  ///< irregular: parts + 1 increasing cell numbers, from 0 to the extent
  Index minimum = 0;  ///< parts have at least this many cells, except the last nonempty one; later parts are empty
  Index modulo = 1;   ///< parts have a multiple of this many cells, except the last nonempty one
  Points points = Points::cells;
  Overlap overlap;

  Partition with_overlap(Index left, Index right, EdgePolicy edge = EdgePolicy::truncate) const;
  Partition with_overlap(OverlapSide left, OverlapSide right) const;
  Partition with_minimum(Index cells) const;
  Partition with_modulo(Index cells) const;
  Partition with_interfaces() const;

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Every coordinate of the grid axis holds the whole dimension; several coordinates mean replicas.
Partition whole();
/// One contiguous block per coordinate.
Partition block(Remainder remainder = Remainder::low);
/// Blocks of `block_size` cells, dealt round-robin.
Partition cyclic(Index block_size = 1);
/// One block per coordinate with the given bounds: parts + 1 numbers from 0 to the extent.
Partition irregular(std::vector<Index> bounds);

/// `count` slices of one part with equal lengths and overlap, `period` cells apart:
///
///        |<- left ->|<---- length ---->|<- right ->|
///                   ^ start + k*period (global)
///        ^ local + k*pitch (index along the local array)
struct SliceFamily {
  Index number = 0;  ///< number of the first slice in the part along this dimension; the others follow it
  Index start = 0;   ///< first owned cell
  Index length = 0;  ///< owned cells
  Index period = 0;
  Index count = 0;
  Index left = 0;   ///< stored overlap cells, including those beyond the edge
  Index right = 0;  ///< as `left`
  Index local = 0;  ///< local index of the first stored cell
  Index pitch = 0;

  Index stored() const noexcept { return left + length + right; }
};

/// The cell that an element of a part's local dimension stands for, and whether the part owns it. `cell` lies outside
/// [0, extent) for overlap beyond the edge.
struct LocalCell {
  Index cell = 0;
  bool owned = false;
};

/// A Partition applied to an extent and a number of parts. The slices of a part are numbered, and lie in local memory,
/// in increasing order of their cells; each is stored with its overlap.
class AxisParts {
 public:
  /// Throws `invalid_use` for a rule that makes no sense, and `overflow` above extent_max; the message names the
  /// numbers.
  AxisParts(Index extent, Index parts, Partition partition);

  Index extent() const noexcept { return extent_; }
  Index parts() const noexcept { return parts_; }
  const Partition& partition() const noexcept { return partition_; }
  /// Returns true when every part stores all cells in order and nothing else, whatever the kind of partition.
  bool is_whole() const noexcept {
    return (partition_.kind == PartitionKind::whole || parts_ == 1) && partition_.overlap == Overlap{};
  }
  /// Returns true when some part has several slices that do not make up the whole. A cyclic partition with one block
  /// per part returns false.
  bool is_dealt() const noexcept {
    return partition_.kind == PartitionKind::cyclic && !is_whole() && partition_.block_size <= (extent_ - 1) / parts_;
  }
  bool replicated() const noexcept { return partition_.kind == PartitionKind::whole && parts_ > 1; }
  /// Returns the distance after which a toroidal dimension repeats.
  Index period() const noexcept { return partition_.points == Points::interfaces ? extent_ - 1 : extent_; }

  /// Returns the slices of one part, in order: at most three families, plus one for each slice whose overlap reaches an
  /// edge.
  std::vector<SliceFamily> slices(Index part) const;
  /// Returns the same cells as slices(), but joins slices that are consecutive both in the array and in local memory: a
  /// `cyclic` dimension with a single part is one stretch.
  std::vector<SliceFamily> stretches(Index part) const;
  Index slice_count(Index part) const;
  /// Returns an upper bound on the cells that all parts together store along this dimension: at most extent_max.
  Index stored_bound() const noexcept { return stored_bound_; }
  /// Returns the number of cells that the part stores along this dimension, overlap included.
  Index local_extent(Index part) const;
  Index owned_count(Index part) const;

  /// Returns the part that owns a cell: the upper part for an interface between two parts, part 0 for replicas.
  Index owner(Index cell) const;
  bool owns(Index part, Index cell) const;
  /// Returns the local index of a cell, or nothing if the part does not own it.
  std::optional<Index> local_of(Index part, Index cell) const;
  LocalCell cell_of(Index part, Index local) const;

  /// Returns parts that may own cells of `within`, in increasing order: a superset, which is small if `within` is.
  std::vector<Index> parts_touching(Interval within) const;
  /// Returns the parts that may own cells of `count` intervals, each `period` cells (positive or negative) after the
  /// last.
  std::vector<Index> parts_touching(Interval first, Index period, Index count) const;

  friend bool operator==(const AxisParts& a, const AxisParts& b) {
    return a.extent_ == b.extent_ && a.parts_ == b.parts_ && a.partition_ == b.partition_;
  }

 private:
  Interval block_of(Index part) const;
  Index block_owner(Index cell) const;
  std::vector<Index> parts_dealt(Interval cells) const;
  Index lower_bound(Index part) const;

  Index extent_;
  Index parts_;
  Partition partition_;
  // Block partitions: the cells, and the number of parts that share them when a minimum leaves some parts empty.
  Index cells_ = 0;
  Index sharing_ = 1;
  Index units_ = 0;
  Index ceil_block_ = 0;
  Index stored_bound_ = 0;
};

/// Return the words of layout texts.
const char* name_of(PartitionKind kind) noexcept;
const char* name_of(Remainder remainder) noexcept;
const char* name_of(EdgePolicy policy) noexcept;

}  // namespace tranship
