// Private: Lowering, which turns what a plan moves between local indices into moves between bytes of slots.
//
// A place is a byte of a slot, not an address, so lowered moves are values: this host binds them to memory
// (move_bundle.hpp), file/ binds one side to a file, and a device or a program may bind them to its own memory. Only
// here do runs meet strides. Both ends of a message lower the same runs in the same order, so block i that the sender
// packs is block i that the receiver unpacks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <tranship/base/strided_view.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/indexed_copy.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// How an array lies in its slot, in bytes. Trivially copyable, so that ranks can send it to each other.
struct SlotLayout {
  /// From the first byte of the slot to the first element: usually 0 in memory, and the beginning of the elements in a
  /// file.
  Index offset_bytes = 0;
  Index strides_bytes[dims_max] = {};
  Index local_extents[dims_max] = {};
  int dims = 0;
  /// Distance from the real to the imaginary part of an element; 0 for types that are not complex.
  Index part_stride_bytes = 0;
  /// True if that distance is the size of a part: an element is contiguous.
  bool parts_together = true;

  /// Returns true if moves that were lowered for one layout also serve the other.
  friend bool operator==(const SlotLayout& a, const SlotLayout& b) noexcept;
};

/// Returns the layout of a view in a slot that begins with the view's first element. The view needs no memory unless it
/// is split complex. Throws `overflow` if its elements reach 2^62 bytes or more, so that no later offset overflows.
SlotLayout layout_of(const StridedView& view);

/// The slots that are not arrays: the staging buffer of a message, and constants() of this library.
inline constexpr int staging_slot = -1;
inline constexpr int constants_slot = -2;

/// Returns the bytes that moves read as constants: the identities of the combinations. They are static.
std::span<const std::byte> constants();

/// A byte of a slot; independent of the process that uses it.
struct MovePlace {
  int slot = 0;
  Index offset_bytes = 0;
  friend bool operator==(const MovePlace&, const MovePlace&) = default;
  friend bool operator<(const MovePlace& a, const MovePlace& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.offset_bytes < b.offset_bytes;
  }
};

/// One strided or indexed move between two places, or one move for every stretch of a lattice. Slots of the source are
/// arrays of the sending rank, and slots of the target are arrays of the receiving rank.
struct LoweredMove {
  CopyBlock block;
  ElementMap move = ElementMap::copy;
  Arithmetic arithmetic = Arithmetic::none;
  int width = 1;
  MovePlace source;
  MovePlace target;
  /// For an indexed move: the rows, as byte offsets from the place; the block is then unused. The shared pointers own
  /// the lists, to which `indexed` points.
  std::shared_ptr<const std::vector<long long>> source_rows;
  std::shared_ptr<const std::vector<long long>> target_rows;
  IndexedBlock indexed;
  bool is_indexed = false;
  /// For a move along a lattice, which the shared pointer owns: the block is that of one stretch. Its first element
  /// lies as far from the place as the stretch begins in the local array, and its cells are dimension `lattice_dim`.
  std::shared_ptr<const RunLattice> lattice;
  int lattice_dim = 0;
  Index lattice_cells = 0;

  /// Returns true if the target is a staging buffer, so that the move goes through its source array.
  bool packs() const noexcept { return target.slot == staging_slot; }
  bool unpacks() const noexcept { return source.slot == staging_slot; }
  /// Returns the block of a routed move in its fastest form; for a lattice, the block of one stretch.
  CopyBlock routed_block() const;
  /// Makes the move between slots whose first bytes are `source_base` and `target_base`. Its stores are ordered before
  /// the caller's later stores.
  void run(CopyMethod way, const std::byte* source_base, std::byte* target_base) const {
    run(0, outermost(), way, source_base, target_base);
  }
  /// Makes only the part [lower, upper) of the outermost loop: the block's first dimension, the list of rows, or the
  /// parts into which a lattice may be cut.
  void run(long long lower, long long upper, CopyMethod way, const std::byte* source_base,
           std::byte* target_base) const;
  long long outermost() const;
  Index bytes() const;

 private:
  void run_lattice(long long lower, long long upper, CopyMethod way, const std::byte* from, std::byte* to) const;
};

/// How the bytes of a message travel.
enum class Hop : std::uint8_t {
  direct,  ///< from the source array to the target array
  pack,    ///< from the source array to a contiguous buffer
  unpack,  ///< from a contiguous buffer to the target array
};

/// Append the moves of one transfer from array to array, before route(). Their loops are in the order of the plan,
/// which both ends of a message share. Throw `invalid_use` for arithmetic on bool.
void lower_transfer(const Transfer& transfer, ElementType type, const SlotLayout& source, const SlotLayout& target,
                    std::vector<LoweredMove>& moves);
void lower_indexed(const IndexedTransfer& transfer, ElementType type, const SlotLayout& source,
                   const SlotLayout& target, std::vector<LoweredMove>& moves);
/// Appends the moves of one fill of the rank's own array.
void lower_fill(const LocalFill& fill, ElementType type, const SlotLayout& slot, std::vector<LoweredMove>& moves);

/// Routes lowered moves along a hop, and brings every block into its fastest form. Packed moves lie in the staging
/// buffer one after the other, in their order, from `staging_bytes` on; returns the next free byte. Call it once for
/// each move: the order of loops in which a move was lowered determines how it is packed.
Index route(std::vector<LoweredMove>& moves, Hop hop, Index staging_bytes = 0);

/// Returns the bytes of a direct move that are contiguous on both sides; for a transpose, the bytes along the shorter
/// of the dimensions that are contiguous on one side. Works before and after route().
Index run_bytes(const LoweredMove& move);

/// Return the bytes that a transfer takes in a staging buffer.
Index staged_bytes(const Transfer& transfer, ElementType type);
Index staged_bytes(const IndexedTransfer& transfer, ElementType type);

}  // namespace tranship
