// Private: Packing, blocks of arrays one after the other in a flat message, each turned, mirrored or negated on its
// way. The message has no headers or padding, because both ends know the list.
//
// A packing is lowered once, to the moves of a MoveList, and runs with any arrays that have the layouts for which it
// was lowered.
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

/// Returns the block that holds `box` of an array, seen in a turned frame. `turn` maps the frame of the message to the
/// frame of the array, in the dimensions of the array that `turned_dims` lists; the other dimensions do not change.
PackedBlock turned_block(int array, const Box& box, const IndexMap& turn, const Indices& turned_dims);

enum class PackDirection : std::uint8_t {
  pack,    ///< from the arrays to the message
  unpack,  ///< from the message to the arrays
};

class Packing {
 public:
  Packing() = default;
  /// Blocks follow each other in the message in the given order. They are moved by increasing array number, and the
  /// blocks of one array in any order, so unpacked blocks of one array must not overlap. Throws `invalid_use` for a
  /// block outside its array and for a map that its elements do not have, and `overflow`.
  Packing(PackDirection direction, std::span<const PackedArray> arrays, std::span<const PackedBlock> blocks);

  /// Returns the size of the whole message.
  Index bytes() const noexcept { return bytes_; }
  /// Moves everything between the message and the arrays; `arrays` has the address of the first element of each array.
  /// The message needs no alignment and must not overlap the arrays. Several threads may run one packing at the same
  /// time.
  void run(std::span<std::byte* const> arrays, std::byte* message) const;
  MoveList::Summary summary() const { return moves_.summary(); }

 private:
  MoveList moves_;
  std::vector<int> ends_;  ///< of the list: the array, or staging_slot
  std::size_t arrays_ = 0;
  Index bytes_ = 0;
};

}  // namespace tranship
