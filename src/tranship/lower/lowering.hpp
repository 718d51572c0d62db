// Lowering: from what a plan moves between local indices to what the kernels move between addresses.
//
// Only here do runs meet strides. Both ends of a message lower the same runs in the same order, so that block i of the
// sender's packing is block i of the receiver's unpacking.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <tranship/base/strided_view.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/indexed_copy.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Where a slot lies, as this rank addresses it. Plain, so that ranks can tell each other.
struct SlotAddress {
  std::byte* data = nullptr;
  Index strides_bytes[dims_max] = {};
  Index local_extents[dims_max] = {};
  int dims = 0;
  /// Distance from the real to the imaginary part of an element; of other types 0.
  Index part_stride_bytes = 0;
  /// Whether that distance is the size of a part: one element, side by side.
  bool parts_together = true;
};

SlotAddress address_of(const StridedView& view);

/// Where a move goes through an array, in terms that do not depend on who looks: the slot and the bytes from the first
/// element. It is the target array, or the source where the target is a staging buffer.
struct MovePlace {
  int slot = -1;
  Index offset_bytes = 0;
  friend bool operator<(const MovePlace& a, const MovePlace& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.offset_bytes < b.offset_bytes;
  }
};

/// How far both ends of moves lie from where they were lowered: the same moves serve arrays that are laid out alike.
struct MoveShift {
  std::ptrdiff_t source_bytes = 0;
  std::ptrdiff_t target_bytes = 0;
};

/// One strided or indexed move between two bases. In staged messages one of the bases is the staging buffer.
struct LoweredMove {
  CopyBlock block;
  Move move = Move::copy;
  Arithmetic arithmetic = Arithmetic::none;
  int width = 1;
  std::byte* source = nullptr;
  std::byte* target = nullptr;
  MovePlace place;
  bool place_is_source = false;
  /// For an indexed move: the rows; the block does not count then. The lists are kept by the pointer.
  std::shared_ptr<const std::vector<long long>> source_rows;
  std::shared_ptr<const std::vector<long long>> target_rows;
  IndexedBlock indexed;
  bool is_indexed = false;

  /// Makes the move; its stores are ordered before what the caller stores afterwards.
  void run(CopyMethod way) const { run(0, outermost(), way); }
  /// The same for [lower, upper) of the outermost loop only: of the block's first dimension, or of the list of rows.
  void run(long long lower, long long upper, CopyMethod way, MoveShift shift = {}) const;
  long long outermost() const;
  Index bytes() const;
};

/// How the bytes of a message travel.
enum class Hop : std::uint8_t {
  direct,  ///< from the source array to the target array
  pack,    ///< from the source array to a contiguous buffer
  unpack,  ///< from a contiguous buffer to the target array
};

/// Appends the moves of one transfer. `staging` is where the buffer of the message goes on (pack, unpack), advanced by
/// the bytes of the transfer; it is ignored by direct moves. Throws `invalid_use` for arithmetic on bool.
void lower_transfer(const Transfer& transfer, ElementType type, const SlotAddress& source, const SlotAddress& target,
                    Hop hop, std::byte*& staging, std::vector<LoweredMove>& moves);
void lower_indexed(const IndexedTransfer& transfer, ElementType type, const SlotAddress& source,
                   const SlotAddress& target, Hop hop, std::byte*& staging, std::vector<LoweredMove>& moves);
/// Appends the moves of one fill of the rank's own array.
void lower_fill(const LocalFill& fill, ElementType type, const SlotAddress& slot, std::vector<LoweredMove>& moves);

/// Bytes that a transfer takes in a staging buffer.
Index staged_bytes(const Transfer& transfer, ElementType type);
Index staged_bytes(const IndexedTransfer& transfer, ElementType type);

}  // namespace tranship
