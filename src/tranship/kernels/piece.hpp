// Private: Piece, three nested loops that one kernel moves; one launch walks a list of pieces. A piece has no address,
// only the numbers of two bases and offsets from them, so that a list that is uploaded once serves any buffers. All
// offsets within a piece fit in 31 bits on either side, so indexing needs no 64-bit multiplication.
// host/piece_list.hpp makes pieces from moves, move_pieces.hpp moves them.
#pragma once

#include <tranship/base/reduction.hpp>
#include <tranship/kernels/shared.hpp>

namespace tranship::packing {

inline constexpr unsigned pack_lanes = 256;
inline constexpr unsigned warp_lanes = 32;
/// A block moves a group of this many units at a time: its warps take one each, or all of them move one transposed
/// tile.
inline constexpr unsigned group_units = pack_lanes / warp_lanes;

/// A lane loads this many vectors before it stores the first of them. More are in flight if they are narrow, which
/// takes registers; a list that needs only lean_vectors runs with more blocks on a multiprocessor.
inline constexpr unsigned lane_vectors_max = 8, lean_vectors = 4;
TRANSHIP_SHARED constexpr unsigned lane_vectors_of(unsigned width_bytes, unsigned most) {
  const unsigned depth = width_bytes == 16 ? lean_vectors : lane_vectors_max;
  return most < depth ? most : depth;
}

enum class PieceKind : unsigned char {
  elements,          ///< lanes take consecutive columns, then rows, then outers
  transposed,        ///< columns lie side by side in the source and rows in the target: tiles through shared memory
  transposed_words,  ///< transposed elements of 1 or 2 bytes that are accessed by words of 4 bytes on both sides
};

/// Returns the elements on a side of a transposed tile. Narrow elements take larger tiles, so that enough bytes are in
/// flight and each warp still reads and writes whole sectors.
TRANSHIP_SHARED constexpr unsigned tile_side(PieceKind kind, unsigned width_bytes) {
  if (kind == PieceKind::transposed_words) return warp_lanes * 4 / width_bytes;
  return width_bytes >= 8 ? 32 : 64;
}
/// A transposed tile takes this much shared memory: it is one element wider than the tile against bank conflicts, at
/// most 32*33*16 bytes, which is more than 64*65*4, and than 128*128 of words.
inline constexpr unsigned room_bytes = 32 * 33 * 16;

/// Element (outer, row, column), of 1 << width_log2 bytes, is read at source base + source_offset + outer *
/// source_outer + row * source_row + column * source_column. The target address has the same form.
struct alignas(16) Piece {
  long long source_offset;
  long long target_offset;
  unsigned source_base;
  unsigned target_base;
  int source_column, target_column;
  int source_row, target_row;
  int source_outer, target_outer;
  unsigned columns, rows, outers;
  /// These divide by columns and by rows; in a transposed piece by the number of tiles along each of them.
  unsigned column_multiplier, row_multiplier;
  unsigned char column_shift, row_shift;
  unsigned char width_log2;
  PieceKind kind;
  ElementMap map;  ///< unless it is copy, a vector is one element or 16 bytes of them
};
static_assert(sizeof(Piece) == 80);

/// Tells where a group begins, so that each of its warps finds its piece with one load. Pieces follow each other in a
/// group, and each has at least one unit.
struct alignas(16) GroupStart {
  unsigned piece;   ///< piece of the group's first unit
  unsigned begin;   ///< the first unit of that piece
  unsigned firsts;  ///< bit u: another piece begins with unit u of the group
};

/// Piece i has the units first_units[i] to first_units[i + 1] - 1. The units of a transposed piece fill whole groups, a
/// tile each; the last units of another piece may be empty.
struct PieceListView {
  const Piece* pieces = nullptr;
  const unsigned* first_units = nullptr;  ///< count + 1 numbers
  const GroupStart* starts = nullptr;     ///< one per group; if null, warps search; a list of one piece needs none
  unsigned count = 0;
  unsigned groups = 0;
  unsigned lane_vectors = lean_vectors;  ///< vectors of a unit that a lane moves, if the width allows this many
};

/// Selects which groups a block takes.
enum class Order : unsigned char {
  shares,   ///< consecutive groups
  strided,  ///< block b of n takes the groups b, b + n, ...; blocks that run together work side by side
};

/// Holds the addresses of a launch. A few travel as arguments of the kernel, which costs no access to memory.
struct Bases {
  static constexpr unsigned few_max = 40;

  unsigned char* const* many = nullptr;  ///< if not null, all addresses
  unsigned char* few[few_max] = {};

  TRANSHIP_SHARED unsigned char* operator[](unsigned i) const { return many ? many[i] : few[i]; }
};

/// Division of numbers below 2^31 by a multiplication: floor(x / d) = floor(x * multiplier / 2^(31 + shift)) with
/// shift = ceil(log2(d)) and multiplier = ceil(2^(31 + shift) / d). This is exact because multiplier * d exceeds
/// 2^(31 + shift) by less than d <= 2^shift (Granlund and Montgomery, 1994, theorem 4.2).
struct Divisor {
  unsigned multiplier;
  unsigned char shift;
};
constexpr Divisor divisor_of(unsigned d) {
  unsigned char shift = 0;
  while ((1ull << shift) < d) ++shift;
  return {static_cast<unsigned>(((1ull << (31 + shift)) + d - 1) / d), shift};
}
TRANSHIP_SHARED inline unsigned divide(unsigned x, unsigned multiplier, unsigned shift) {
#if defined(__CUDA_ARCH__)
  return __umulhi(2 * x, multiplier) >> shift;
#else
  return static_cast<unsigned>((2ull * x * multiplier) >> 32) >> shift;
#endif
}

/// Returns the first group of a block's share; for the block after the last one, returns the number of groups.
TRANSHIP_SHARED inline unsigned share_begin(unsigned groups, unsigned block, unsigned blocks) {
  const unsigned each = groups / blocks, more = groups % blocks;
  return block * each + (block < more ? block : more);
}

}  // namespace tranship::packing
