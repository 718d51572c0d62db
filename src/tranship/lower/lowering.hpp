// Private: Lowering, from what a plan moves between local indices to what the kernels move between places.
//
// A place is a byte of a slot and no address, so what is lowered is a value: this host binds it to memory
// (move_bundle.hpp), file/ binds one side to a file, and a device or a program may bind it to what it has. Only here do
// runs meet strides. Both ends of a message lower the same runs in the same order, so that block i of the sender's
// packing is block i of the receiver's unpacking.
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

/// How an array lies in its slot, in bytes. Plain, so that ranks can tell each other.
struct SlotLayout {
  /// From the first byte of the slot to the first element: in memory usually 0, in a file where the elements begin.
  Index offset_bytes = 0;
  Index strides_bytes[dims_max] = {};
  Index local_extents[dims_max] = {};
  int dims = 0;
  /// Distance from the real to the imaginary part of an element; of other types 0.
  Index part_stride_bytes = 0;
  /// Whether that distance is the size of a part: one element, side by side.
  bool parts_together = true;

  /// Whether what is lowered for one of them serves the other, too.
  friend bool operator==(const SlotLayout& a, const SlotLayout& b) noexcept;
};

/// How a view lies in a slot that begins with its first element. The view needs no memory, unless it is split complex.
/// Throws `overflow` where its elements are 2^62 bytes or more apart, so that no offset overflows afterwards.
SlotLayout layout_of(const StridedView& view);

/// The slots that are no arrays: the staging buffer of a message, and constants() of this library.
inline constexpr int staging_slot = -1;
inline constexpr int constants_slot = -2;

/// The bytes that moves read as constants: what changes nothing when it is combined. They stay as long as the program
/// runs.
std::span<const std::byte> constants();

/// A byte of a slot, in terms that do not depend on who looks.
struct MovePlace {
  int slot = 0;
  Index offset_bytes = 0;
  friend bool operator==(const MovePlace&, const MovePlace&) = default;
  friend bool operator<(const MovePlace& a, const MovePlace& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.offset_bytes < b.offset_bytes;
  }
};

/// One strided or indexed move between two places, or one for every stretch of a lattice. Slots of the source are
/// arrays of the rank that sends, slots of the target are arrays of the rank that receives.
struct LoweredMove {
  CopyBlock block;
  ElementMap move = ElementMap::copy;
  Arithmetic arithmetic = Arithmetic::none;
  int width = 1;
  MovePlace source;
  MovePlace target;
  /// For an indexed move: the rows, as bytes from the place; the block does not count then. The lists are kept by the
  /// pointer.
  std::shared_ptr<const std::vector<long long>> source_rows;
  std::shared_ptr<const std::vector<long long>> target_rows;
  IndexedBlock indexed;
  bool is_indexed = false;
  /// For a move along a lattice, kept by the pointer: the block then is that of a stretch, whose first element lies as
  /// far from the place as the stretch begins in the local array, and whose cells are dimension `lattice_dim`.
  std::shared_ptr<const RunLattice> lattice;
  int lattice_dim = 0;
  Index lattice_cells = 0;

  /// Whether the array that the move goes through is its source, because the target is a staging buffer.
  bool packs() const noexcept { return target.slot == staging_slot; }
  bool unpacks() const noexcept { return source.slot == staging_slot; }
  /// The block that moves in its fastest form; of a lattice, that of a stretch.
  CopyBlock routed_block() const;
  /// Makes the move between slots whose first bytes are `source_base` and `target_base`; its stores are ordered before
  /// what the caller stores afterwards.
  void run(CopyMethod way, const std::byte* source_base, std::byte* target_base) const {
    run(0, outermost(), way, source_base, target_base);
  }
  /// The same for [lower, upper) of the outermost loop only: of the block's first dimension, of the list of rows, or of
  /// the parts into which a lattice may be cut.
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

/// Appends the moves of one transfer from array to array. Their loops stand in the order of the plan, which both ends
/// of a message share; route() comes next. Throws `invalid_use` for arithmetic on bool.
void lower_transfer(const Transfer& transfer, ElementType type, const SlotLayout& source, const SlotLayout& target,
                    std::vector<LoweredMove>& moves);
void lower_indexed(const IndexedTransfer& transfer, ElementType type, const SlotLayout& source,
                   const SlotLayout& target, std::vector<LoweredMove>& moves);
/// Appends the moves of one fill of the rank's own array.
void lower_fill(const LocalFill& fill, ElementType type, const SlotLayout& slot, std::vector<LoweredMove>& moves);

/// Sends moves that have been lowered by a hop, and brings every block into the form that moves fastest. What is packed
/// or unpacked lies in the staging buffer move by move, in their order, from `staging_bytes` on; the next byte is
/// returned. Once for each move: only as it was lowered does its order of loops say how it is packed.
Index route(std::vector<LoweredMove>& moves, Hop hop, Index staging_bytes = 0);

/// Bytes of a direct move that lie together on both sides; of a transpose, along the shorter of the dimensions that are
/// contiguous on either side. Before route() and after it.
Index run_bytes(const LoweredMove& move);

/// Bytes that a transfer takes in a staging buffer.
Index staged_bytes(const Transfer& transfer, ElementType type);
Index staged_bytes(const IndexedTransfer& transfer, ElementType type);

}  // namespace tranship
