// Private: Moves a CopyBlock on the host as fast as its memory allows. The result equals that of move() in
// strided_copy.hpp; the block's shape decides the loop, by measurements in docs/copying.md.
#pragma once

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/copy_block.hpp>

namespace tranship {

/// Size of a cache line.
inline constexpr long long line_bytes = 64;

enum class Simd : unsigned char {
  bytes16,  ///< available on every CPU of the architecture
  bytes32,  ///< AVX2 and F16C
};

/// How stores reach memory that no cache holds.
enum class Stores : unsigned char {
  plain,       ///< ordinary stores
  prefetched,  ///< lines are prefetched for writing some time before
  streaming,   ///< bypass the caches, without reading the lines first
};

/// How plain stores write rows of 8 KiB and more.
enum class LongRows : unsigned char {
  vectors,  ///< loops of vectors
  string,   ///< the CPU's instruction (rep movsb), unless the positions of the two rows make it slow
};

/// A way to move on this host. It never changes the result.
struct CopyMethod {
  Simd simd = Simd::bytes16;
  Stores stores = Stores::plain;
  LongRows long_rows = LongRows::vectors;
  friend bool operator==(const CopyMethod&, const CopyMethod&) = default;
};

/// Returns the way for a move that belongs to moves of `traffic_bytes` in all: plain stores while the caches hold that
/// much, else the kind that is fastest on this make of CPU. Long rows use strings if the CPU reports that both short
/// and long ones are fast. The environment variable TRANSHIP_STORES (plain, prefetched, streaming) overrides the kind;
/// it is read once.
CopyMethod copy_method(long long traffic_bytes);
/// Returns the traffic from which on the caches are too small for plain stores: half of the last cache.
long long large_traffic_min();
/// Returns the size of the largest cache that a core has to itself.
long long private_cache_bytes();

/// The shape of a block, which decides how it is moved.
enum class BlockShape : unsigned char {
  empty,
  rows,      ///< contiguous on both sides along the last dimension, or elements that lie lines apart
  tiles,     ///< contiguous along one dimension in the source and along another in the target
  elements,  ///< everything else, and all blocks in which order matters
};

/// Returns the shape of a canonical block.
BlockShape shape_of(const CopyBlock& block, int width);

/// Returns true if the last dimension goes upward through contiguous elements on both sides.
bool has_contiguous_rows(const CopyBlock& block, int width);
/// Returns the bytes of one row of an upward block of shape `rows`: the last dimension, or one element.
long long row_bytes_of(const CopyBlock& block, int width);

/// Moves exactly as move() does. `block` should be canonical. Requires `can_move(move, arithmetic, width)`. Its stores,
/// streaming ones too, are ordered before the caller's later stores.
void move_on_host(const CopyBlock& block, ElementMap move, Arithmetic arithmetic, int width, CopyMethod way,
                  const void* source, void* target);

/// Contiguous rows in two loops, each with at least one turn: row i of plane k is read at source + k*source_plane +
/// i*source_stride and written at the same form of the target. Strides are in bytes.
struct Rows {
  long long count = 1;
  long long row_bytes = 0;
  long long source_stride = 0;
  long long target_stride = 0;
  long long planes = 1;
  long long source_plane = 0;
  long long target_plane = 0;
};

/// Takes the innermost loops out of an upward block of shape `rows`; the outer loops stay in `block`.
Rows take_rows(CopyBlock& block, int width);

/// Copies rows of `row_bytes` (at least one). It is for callers that walk many blocks and order the stores once, at the
/// end.
using RowCopy = void (*)(const Rows& rows, const void* source, void* target);
RowCopy row_copy(long long row_bytes, CopyMethod way);
/// Copies a single row and orders its stores.
void copy_row(void* target, const void* source, long long bytes, CopyMethod way);
/// Says which side of a piece belongs to a peer, whose cache may hold its lines.
enum class PieceOf : unsigned char {
  own_memory,
  source_of_peer,  ///< another core wrote the source
  target_of_peer,  ///< another core may have read the target. Some CPUs take such lines back one by one; streaming
                   ///< stores, which take none, are several times faster there. So long pieces time their first bytes
};
/// Copies a contiguous piece by the fastest way for its size, its place and this CPU. Its stores are ordered before the
/// caller's later stores. `traffic_bytes` is what this and similar pieces write together, if that is more than `bytes`.
void copy_piece(void* target, const void* source, long long bytes, PieceOf piece_of = PieceOf::own_memory,
                long long traffic_bytes = 0);
/// Orders the stores of `way` before the caller's later stores.
void order_stores(CopyMethod way);

const char* name_of(Simd simd);
const char* name_of(Stores stores);
const char* name_of(LongRows long_rows);
const char* name_of(BlockShape shape);

}  // namespace tranship
