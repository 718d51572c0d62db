// Private: Packing, blocks of arrays that stand one after the other in a flat message, each turned, mirrored or negated
// on its way. Without headers or padding: both ends know the list.
//
// It is lowered once, to the moves of a MoveList, and runs with any arrays that lie like those it was lowered for.
#pragma once

#include <span>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/index_map.hpp>
#include <tranship/lower/move_list.hpp>

namespace tranship {

/// One array of a packing.
struct PackedArray {
  ElementType type = ElementType::u8;
  SlotLayout layout;
};

/// A block of a message, row-major: its cell x is the cell `cells.apply(x)` of an array.
struct PackedBlock {
  int array = 0;
  Indices extents;
  IndexMap cells;
  ElementMap map = ElementMap::copy;  ///< copy or negate
};

/// The block that holds `box` of an array as it is seen in a turned frame. `turn` maps the frame of the message to that
/// of the array, in as many dimensions as `turned_dims` names of the array; the others stay as they are.
PackedBlock turned_block(int array, const Box& box, const IndexMap& turn, const Indices& turned_dims);

enum class PackDirection : std::uint8_t {
  pack,    ///< from the arrays to the message
  unpack,  ///< from the message to the arrays
};

class Packing {
 public:
  Packing() = default;
  /// Blocks follow each other in the message in the order given. They are moved in the order of their arrays' numbers,
  /// and those of one array in any order: unpacked blocks of one array must not overlap. Throws `invalid_use` for a
  /// block that does not lie in its array, and for a map that its elements do not have; `overflow`.
  Packing(PackDirection direction, std::span<const PackedArray> arrays, std::span<const PackedBlock> blocks);

  /// Of the whole message.
  Index bytes() const noexcept { return bytes_; }
  /// Moves everything between the message and the arrays, of which the first elements' addresses are given. The message
  /// needs no alignment and shares no memory with the arrays. Several threads may run one packing at a time.
  void run(std::span<std::byte* const> arrays, std::byte* message) const;
  MoveList::Summary summary() const { return moves_.summary(); }

 private:
  MoveList moves_;
  std::vector<int> ends_;  ///< of the list: the array, or staging_slot
  std::size_t arrays_ = 0;
  Index bytes_ = 0;
};

}  // namespace tranship
