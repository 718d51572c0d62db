// Private: the loops of host_move.hpp, one source each, and their building blocks. Each loop is compiled for two widths
// of vector registers: an `always inline` function gets the target of the function into which it is inlined. No other
// inline function may be compiled for AVX2: the linker might choose that copy for the whole program.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/host/inlined.hpp>

// GCC notes that vectors wider than the baseline's are passed in another way. All of these are inlined, so none is
// passed.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace tranship::loops {

using Byte = unsigned char;

TRANSHIP_INLINE void prefetch_to_write(const Byte* line) {
#if defined(__x86_64__)
  // The compiler's prefetch for writing is a prefetch for reading unless the whole build targets a CPU with prefetchw.
  // CPUs without it ignore the instruction.
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1, 3);
#endif
}

template <int Bytes>
struct Vector {
  typedef Byte Type __attribute__((vector_size(Bytes)));
};
template <int Bytes>
using VectorOf = typename Vector<Bytes>::Type;

TRANSHIP_INLINE void stream16(const VectorOf<16>& value, Byte* target) {
#if defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(target), reinterpret_cast<const __m128i&>(value));
#else
  __builtin_memcpy(target, &value, 16);
#endif
}
TRANSHIP_INLINE void stream16(const Byte* source, Byte* target) {
  VectorOf<16> value;
  __builtin_memcpy(&value, source, 16);
  stream16(value, target);
}

template <int Bytes>
TRANSHIP_INLINE void copy_bytes(const Byte* source, Byte* target) {
  __builtin_memcpy(target, source, Bytes);
}

TRANSHIP_INLINE long long bytes_to_line(const Byte* address) {
  return static_cast<long long>(-reinterpret_cast<unsigned long long>(address) & (line_bytes - 1));
}

// Common to the loops over rows.

inline constexpr long long short_row_bytes_max = 64;
/// Up to this size the library's copy is as good as any while the caches hold the data. Above, it may use one
/// instruction (rep movsb) that is twenty times slower for some alignments on some CPUs.
inline constexpr long long medium_row_bytes_max = 1024;
/// From this size on, a string move is at least as fast as a loop of vectors on data in the nearest cache.
inline constexpr long long string_row_bytes_min = 8192;
/// Shorter rows have too few whole lines for streaming stores to pay.
inline constexpr long long streamed_row_bytes_min = 512;

inline constexpr long long page_bytes = 4096;

/// Calls f(source, target) for the first row of each plane.
template <class F>
TRANSHIP_INLINE void for_each_plane(const Rows& rows, const void* source, void* target, F&& f) {
  const auto* from = static_cast<const Byte*>(source);
  auto* to = static_cast<Byte*>(target);
  for (long long k = 0; k < rows.planes; ++k) f(from + k * rows.source_plane, to + k * rows.target_plane);
}

/// Calls f(source, target) for each row.
template <class F>
TRANSHIP_INLINE void for_each_row(const Rows& rows, const void* source, void* target, F&& f) {
  for_each_plane(rows, source, target, [&](const Byte* from, Byte* to) {
    for (long long i = 0; i < rows.count; ++i) f(from + i * rows.source_stride, to + i * rows.target_stride);
  });
}

TRANSHIP_INLINE void copy_row(long long bytes, const Byte* source, Byte* target) {
  __builtin_memcpy(target, source, static_cast<unsigned long>(bytes));
}

/// Returns true if string moves are fast here. On some CPUs they are slow if the target lies less than a line behind
/// the source, modulo the page size.
TRANSHIP_INLINE bool suits_strings(const Byte* source, const Byte* target) {
  const unsigned long long apart =
      (reinterpret_cast<unsigned long long>(target) - reinterpret_cast<unsigned long long>(source)) % 4096;
  return apart == 0 || apart >= static_cast<unsigned long long>(line_bytes);
}

/// Calls f(source, target) for each element of the block's dimensions.
template <class F>
TRANSHIP_INLINE void for_each_base(const CopyBlock& block, const Byte* source, Byte* target, F&& f) {
  long long at[block_dims_max] = {};
  for (;;) {
    f(source, target);
    int d = block.dims - 1;
    for (; d >= 0 && ++at[d] == block.extents[d]; --d) {
      source -= (block.extents[d] - 1) * block.source_strides[d];
      target -= (block.extents[d] - 1) * block.target_strides[d];
      at[d] = 0;
    }
    if (d < 0) return;
    source += block.source_strides[d];
    target += block.target_strides[d];
  }
}

/// Returns the dimension along which a block's source is contiguous and its target is not, or -1 if there is none.
inline int tile_dimension(const CopyBlock& block, int width) {
  for (int d = block.dims - 2; d >= 0; --d)
    if (block.source_strides[d] == width) return d;
  return -1;
}

// The loops. Their blocks go upward and reach each target element once.

/// copy_rows.cpp: rows of bytes. Pieces also use the string and the streaming loops.
RowCopy string_row_copy(Simd simd);
void copy_rows_streamed(const Rows& rows, const void* source, void* target);

/// combine_rows.cpp: contiguous rows of elements. Products, minima and maxima have only these loops, with vectors of 32
/// bytes; all else takes the plain loop of strided_copy.hpp.
RowCopy row_move(ElementMap move, Arithmetic arithmetic, int width, Simd simd);
constexpr bool has_rows_only(ElementMap move) {
  return move == ElementMap::multiply || move == ElementMap::minimum || move == ElementMap::maximum;
}

/// transpose_tiles.cpp: tiles. If they are not copied, they go through a buffer and a row_move().
void move_in_tiles(CopyBlock block, ElementMap move, Arithmetic arithmetic, int width, CopyMethod way,
                   const Byte* source, Byte* target);

/// A plane in which dimension a is contiguous in the target, and b in the source.
struct Plane {
  long long source_stride;  ///< of a
  long long target_stride;  ///< of b
};
/// copy_narrow_tiles.cpp: copies planes of 2 to 4 elements on one side, for all `around`. Returns false if it has no
/// loop for them.
bool copy_narrow_tiles(const CopyBlock& around, const Plane& tile, long long count_a, long long count_b, int width,
                       const Byte* source, Byte* target);

/// move_elements.cpp: one element after the other.
void move_in_elements(CopyBlock block, ElementMap move, Arithmetic arithmetic, int width, const Byte* source,
                      Byte* target);

}  // namespace tranship::loops
