// Private: Moves a CopyBlock on the host as fast as its memory allows: the bytes of move() in strided_copy.hpp, by
// the way that was measured to be fastest for the block's shape. Measurements are in docs/copying.md.
#pragma once

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/copy_block.hpp>

namespace tranship {

/// Of the CPU's caches.
inline constexpr long long line_bytes = 64;

enum class Simd : unsigned char {
  bytes16,  ///< what every CPU of the architecture has
  bytes32,  ///< AVX2 and F16C
};

/// How stores go to memory that no cache holds.
enum class Stores : unsigned char {
  plain,       ///< as the compiler makes them
  prefetched,  ///< the lines are asked for, to be written, some time before
  streaming,   ///< past the caches, without reading the lines first
};

/// How plain stores write rows of 8 KiB and more.
enum class LongRows : unsigned char {
  vectors,  ///< in loops
  string,   ///< by the CPU's own instruction (rep movsb), unless it stumbles over where the two rows lie
};

/// A way to move on this host. It never changes the result.
struct CopyMethod {
  Simd simd = Simd::bytes16;
  Stores stores = Stores::plain;
  LongRows long_rows = LongRows::vectors;
  friend bool operator==(const CopyMethod&, const CopyMethod&) = default;
};

/// The way for a move among others that together write `traffic_bytes`: plain stores while the caches hold that much,
/// then the kind that is fastest on this make of CPU. Long rows are strings where the CPU says that it is fast at short
/// and at long ones. The environment variable TRANSHIP_STORES (plain, prefetched,
/// streaming) overrides the kind; it is read once.
CopyMethod copy_method(long long traffic_bytes);
/// From so many bytes of traffic on, the caches are too small for copy_method(): half of the last one.
long long large_traffic_min();
/// The size of the largest cache that a core has to itself.
long long private_cache_bytes();

/// The shape of a block, which decides how it is moved.
enum class BlockShape : unsigned char {
  empty,
  rows,      ///< contiguous on both sides along the last dimension, or elements that lie lines apart
  tiles,     ///< contiguous along one dimension of the source and another one of the target
  elements,  ///< anything else, and all blocks whose order matters
};

/// The shape of a canonical block.
BlockShape shape_of(const CopyBlock& block, int width);

/// Whether the last dimension goes upward through contiguous elements on both sides.
bool has_contiguous_rows(const CopyBlock& block, int width);
/// The bytes of one row of a block of the shape `rows` that goes upward: the last dimension, or one element.
long long row_bytes_of(const CopyBlock& block, int width);

/// Moves as move() does, to the bit. `block` should be canonical. Requires `can_move(move, arithmetic, width)`. The
/// stores are ordered before what the caller stores afterwards, streaming ones too.
void move_on_host(const CopyBlock& block, ElementMap move, Arithmetic arithmetic, int width, CopyMethod way,
                  const void* source, void* target);

/// Contiguous rows in two loops, at least one in each: row i of plane k is read at source + k*source_plane +
/// i*source_stride and written likewise. Strides are in bytes.
struct Rows {
  long long count = 1;
  long long row_bytes = 0;
  long long source_stride = 0;
  long long target_stride = 0;
  long long planes = 1;
  long long source_plane = 0;
  long long target_plane = 0;
};

/// The innermost loops of a block of the shape `rows` that goes upward; the loops around them stay in `block`.
Rows take_rows(CopyBlock& block, int width);

/// How rows of `row_bytes` (at least one) are copied. For callers that walk many blocks in turns and order the stores
/// once, at the end.
using RowCopy = void (*)(const Rows& rows, const void* source, void* target);
RowCopy row_copy(long long row_bytes, CopyMethod way);
/// One row of its own, its stores ordered.
void copy_row(void* target, const void* source, long long bytes, CopyMethod way);
/// Whose the two sides of a piece are, and so whose cache may hold their lines.
enum class PieceOf : unsigned char {
  own_memory,
  source_of_peer,  ///< another core wrote the source
  target_of_peer,  ///< another core may have read the target. Some CPUs take such lines back one by one, and streaming
                   ///< stores, which take none, are then several times as fast: long pieces time their first bytes
};
/// A contiguous piece that is copied by itself, by what is fastest for its size, where it lies, and this CPU. Its
/// stores are ordered before what the caller stores afterwards. `traffic_bytes` is what it and others of its kind write
/// together, if that is more.
void copy_piece(void* target, const void* source, long long bytes, PieceOf piece_of = PieceOf::own_memory,
                long long traffic_bytes = 0);
/// Orders the stores of `way` before what the caller stores afterwards.
void order_stores(CopyMethod way);

const char* name_of(Simd simd);
const char* name_of(Stores stores);
const char* name_of(LongRows long_rows);
const char* name_of(BlockShape shape);

}  // namespace tranship
