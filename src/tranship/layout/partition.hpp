// Detail: How one dimension is cut among the coordinates of one grid axis, and what each part stores beyond its own
// cells.
//
// A Partition says the rule; an AxisParts is the rule applied to an extent and a number of parts. It answers in
// families: all slices of a part that look alike are one SliceFamily, so nothing here grows with the extent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/index_map.hpp>

namespace tranship {

/// The largest extent, 4,611,686,018,427,387,903, and the most cells that all parts of a dimension together may store,
/// copies and overlap included: sums of two of them fit in 63 bits.
inline constexpr Index extent_max = (Index(1) << 62) - 1;

/// What the overlap of a slice holds where it reaches beyond the array.
enum class EdgePolicy : std::uint8_t {
  truncate,         ///< nothing: the overlap ends at the edge and no cell is stored beyond it
  toroidal,         ///< the cells from the other end: the dimension is periodic
  zero,             ///< zeros
  replicate,        ///< the value of the first or last cell of the array
  replicate_local,  ///< the value of the first or last cell that the slice owns
  open,             ///< stored, but never written by tranship: left to the user, or to a Tiling that continues it
};

/// Where the cells go that do not divide evenly into blocks.
enum class Remainder : std::uint8_t {
  low,   ///< one more cell (or unit of `modulo`) on each of the first parts: balanced, the default
  high,  ///< one more on each of the last parts
  ceil,  ///< blocks of ceil(extent / parts); the last parts may be short or empty (HPF, ScaLAPACK, FFTW)
};

enum class PartitionKind : std::uint8_t { whole, block, cyclic, irregular };

struct OverlapSide {
  Index width = 0;
  EdgePolicy edge = EdgePolicy::truncate;
  friend bool operator==(const OverlapSide&, const OverlapSide&) = default;
};

/// Extra cells that every slice stores to the left and to the right of those it owns. May be wider than a neighbour's
/// whole block. For a cyclic partition it counts elements, on every slice.
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
  Index minimum = 0;          ///< every part but the tail has at least so many cells; late parts may be empty
  Index modulo = 1;           ///< every part but the tail has a multiple of so many cells
  Points points = Points::cells;
  Overlap overlap;

  Partition with_overlap(Index left, Index right, EdgePolicy edge = EdgePolicy::truncate) const;
  Partition with_overlap(OverlapSide left, OverlapSide right) const;
  Partition with_minimum(Index cells) const;
  Partition with_modulo(Index cells) const;
  Partition with_interfaces() const;

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// Every coordinate of the grid axis holds the whole dimension; more than one coordinate means replicas.
Partition whole();
/// One contiguous block per coordinate.
Partition block(Remainder remainder = Remainder::low);
/// Blocks of `block_size` cells dealt round-robin.
Partition cyclic(Index block_size = 1);
/// One block per coordinate with the given bounds (parts + 1 numbers from 0 to the extent).
Partition irregular(std::vector<Index> bounds);

/// `count` slices of one part that look alike, `period` cells apart:
///
///        |<- left ->|<---- length ---->|<- right ->|
///                   ^ start + k*period (global)
///        ^ local + k*pitch (index along the local array)
struct SliceFamily {
  Index number = 0;  ///< local number, along this dimension, of the first slice; the others follow it
  Index start = 0;   ///< first owned cell
  Index length = 0;  ///< owned cells
  Index period = 0;
  Index count = 0;
  Index left = 0;   ///< stored overlap cells, those beyond the edge included
  Index right = 0;  ///< likewise
  Index local = 0;  ///< local index of the first stored cell
  Index pitch = 0;

  Index stored() const noexcept { return left + length + right; }
};

/// One cell of a part's local dimension: which cell it stands for and whether the part owns it. `cell` may lie outside
/// [0, extent) for overlap beyond the edge.
struct LocalCell {
  Index cell = 0;
  bool owned = false;
};

/// A Partition applied to an extent and a number of parts. Slices are numbered, and lie in local memory, in increasing
/// order of their cells; each with its overlap around it.
class AxisParts {
 public:
  /// Throws `invalid_use` for a rule that makes no sense, and `overflow` above extent_max, naming the numbers given.
  AxisParts(Index extent, Index parts, Partition partition);

  Index extent() const noexcept { return extent_; }
  Index parts() const noexcept { return parts_; }
  const Partition& partition() const noexcept { return partition_; }
  /// Every part stores all cells in their order and nothing else, whatever the partition is called.
  bool is_whole() const noexcept {
    return (partition_.kind == PartitionKind::whole || parts_ == 1) && partition_.overlap == Overlap{};
  }
  /// Some part has several slices that do not make up the whole. A cyclic partition of one block for each part has not.
  bool is_dealt() const noexcept {
    return partition_.kind == PartitionKind::cyclic && !is_whole() && partition_.block_size <= (extent_ - 1) / parts_;
  }
  bool replicated() const noexcept { return partition_.kind == PartitionKind::whole && parts_ > 1; }
  /// Distance after which a toroidal dimension repeats.
  Index period() const noexcept { return partition_.points == Points::interfaces ? extent_ - 1 : extent_; }

  /// The slices of one part, in order. At most three families and the slices whose overlap reaches an edge.
  std::vector<SliceFamily> slices(Index part) const;
  /// The same cells, with slices that follow each other both in the array and in local memory joined into one: what
  /// `cyclic` leaves to a single part is one stretch.
  std::vector<SliceFamily> stretches(Index part) const;
  Index slice_count(Index part) const;
  /// All parts together store no more cells along this dimension: at most extent_max.
  Index stored_bound() const noexcept { return stored_bound_; }
  /// Cells that the part stores along this dimension, overlap included.
  Index local_extent(Index part) const;
  Index owned_count(Index part) const;

  /// The part that owns a cell; of an interface between two parts the upper one; part 0 of replicas.
  Index owner(Index cell) const;
  bool owns(Index part, Index cell) const;
  /// Local index of an owned cell; empty when the part does not own it.
  std::optional<Index> local_of(Index part, Index cell) const;
  LocalCell cell_of(Index part, Index local) const;

  /// Parts that may own cells of `within`, increasing; a superset that is small when `within` is.
  std::vector<Index> parts_touching(Interval within) const;
  /// The same of `count` intervals, each `period` cells (of either sign) after the one before.
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
  // For block partitions: cells, and the parts that share them when a minimum leaves some empty.
  Index cells_ = 0;
  Index sharing_ = 1;
  Index units_ = 0;
  Index ceil_block_ = 0;
  Index stored_bound_ = 0;
};

/// The words of layout texts.
const char* name_of(PartitionKind kind) noexcept;
const char* name_of(Remainder remainder) noexcept;
const char* name_of(EdgePolicy policy) noexcept;

}  // namespace tranship
