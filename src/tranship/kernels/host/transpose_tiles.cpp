// Tiles: transposed in registers, a cache line long in both directions.
#include <algorithm>
#include <utility>

#include <tranship/kernels/host/host_loops.hpp>

namespace tranship::loops {
namespace {

// Tiles. Dimension a is contiguous in the target, b in the source:
//
//          b -->                          a -->
//      a   s00 s01 s02 s03            b   s00 s10 s20 s30
//      |   s10 s11 s12 s13    ==>     |   s01 s11 s21 s31
//      v   s20 s21 s22 s23            v   ...
//
// A tile is a cache line long in both directions, so every line is read and written whole. It consists of chunks that
// are transposed in registers: rows are loaded in lanes of 16 bytes and interleaved log2(elements per lane) times.

/// Takes elements alternately from the lower (or upper) halves of each lane of a and b.
template <int Bytes, int Width, int Half, int... I>
TRANSHIP_INLINE void interleave(VectorOf<Bytes>& out, const VectorOf<Bytes>& a, const VectorOf<Bytes>& b,
                                std::integer_sequence<int, I...>) {
  out = __builtin_shufflevector(
      a, b, (I / 16 * 16 + Half * 8 + I % 16 / Width / 2 * Width + I % Width + I % 16 / Width % 2 * Bytes)...);
}

template <int... I>
TRANSHIP_INLINE void join(VectorOf<32>& out, const VectorOf<16>& low, const VectorOf<16>& high,
                          std::integer_sequence<int, I...>) {
  out = __builtin_shufflevector(low, high, I...);
}

/// Loads Bytes/16 lanes from addresses `lane_stride` apart.
template <int Bytes>
TRANSHIP_INLINE void load_lanes(VectorOf<Bytes>& out, const Byte* source, long long lane_stride) {
  if constexpr (Bytes == 16) {
    __builtin_memcpy(&out, source, 16);
  } else {
    VectorOf<16> low;
    __builtin_memcpy(&low, source, 16);
#if defined(__x86_64__) && !defined(TRANSHIP_SANITIZED) && !defined(__clang__)
    // GCC would load the upper lane separately and then shuffle. (clang generates this instruction.)
    VectorOf<Bytes> both;
    asm("vinserti128 $1, %2, %t1, %0"
        : "=x"(both)
        : "x"(low), "m"(*reinterpret_cast<const Byte(*)[16]>(source + lane_stride)));
    out = both;
#else
    VectorOf<16> high;
    __builtin_memcpy(&high, source + lane_stride, 16);
    join(out, low, high, std::make_integer_sequence<int, 32>{});
#endif
  }
}

template <int Bytes, int... I>
TRANSHIP_INLINE void take_half(VectorOf<Bytes>& out, const VectorOf<2 * Bytes>& value, long long half,
                               std::integer_sequence<int, I...>) {
  out = half == 0 ? __builtin_shufflevector(value, value, I...) : __builtin_shufflevector(value, value, (Bytes + I)...);
}

template <int Bytes, bool Streamed>
TRANSHIP_INLINE void store_vector(const VectorOf<Bytes>& value, Byte* target) {
  if constexpr (!Streamed) {
    __builtin_memcpy(target, &value, Bytes);
  } else if constexpr (Bytes == 16) {
    stream16(value, target);
  } else {
    for (long long half = 0; half < 2; ++half) {
      VectorOf<Bytes / 2> part;
      take_half<Bytes / 2>(part, value, half, std::make_integer_sequence<int, Bytes / 2>{});
      store_vector<Bytes / 2, true>(part, target + half * (Bytes / 2));
    }
  }
}

/// Transposes Bytes/Width elements along a and 16/Width along b.
template <int Width, int Bytes, bool Streamed>
TRANSHIP_INLINE void transpose_chunk(const Plane& tile, const Byte* source, Byte* target) {
  constexpr int n = 16 / Width;
  VectorOf<Bytes> rows[n], next[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) load_lanes<Bytes>(rows[i], source + i * tile.source_stride, n * tile.source_stride);
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      interleave<Bytes, Width, 0>(next[2 * i], rows[i], rows[i + n / 2], std::make_integer_sequence<int, Bytes>{});
      interleave<Bytes, Width, 1>(next[2 * i + 1], rows[i], rows[i + n / 2], std::make_integer_sequence<int, Bytes>{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) store_vector<Bytes, Streamed>(rows[i], target + i * tile.target_stride);
}

/// Transposes a tile. A tile of narrow elements has more lines than a cache has ways or a core has buffers for
/// streaming, so it goes through a buffer.
template <int Width, int Bytes, bool Streamed>
TRANSHIP_INLINE void transpose_tile(const Plane& tile, const Byte* source, Byte* target) {
  constexpr bool buffered = Width <= 2;
  alignas(line_bytes) Byte buffer[buffered ? line_bytes * line_bytes / Width : 1];
  const Plane to{tile.source_stride, buffered ? line_bytes : tile.target_stride};
  Byte* into = buffered ? buffer : target;
  for (int b = 0; b < line_bytes; b += 16)
    for (int a = 0; a < line_bytes; a += Bytes)
      transpose_chunk<Width, Bytes, Streamed && !buffered>(to, source + a / Width * tile.source_stride + b,
                                                           into + b / Width * to.target_stride + a);
  if constexpr (buffered)
    for (int i = 0; i < line_bytes / Width; ++i) {
      const Byte* line = buffer + i * line_bytes;
      Byte* out = target + i * tile.target_stride;
      if constexpr (Streamed)
        for (int k = 0; k < line_bytes; k += 16) stream16(line + k, out + k);
      else
        copy_bytes<line_bytes>(line, out);
    }
}

/// Copies areas that are too narrow for vectors.
template <int Width>
TRANSHIP_INLINE void transpose_elements(long long count_a, long long count_b, const Plane& tile, const Byte* source,
                                        Byte* target) {
  for (long long b = 0; b < count_b; ++b)
    for (long long a = 0; a < count_a; ++a)
      copy_bytes<Width>(source + a * tile.source_stride + b * Width, target + b * tile.target_stride + a * Width);
}

/// Copies the margins of a block: by chunks, and by elements where no chunk fits.
template <int Width, int Bytes>
TRANSHIP_INLINE void transpose_margin(long long count_a, long long count_b, const Plane& tile, const Byte* source,
                                      Byte* target) {
  constexpr long long n_a = Bytes / Width, n_b = 16 / Width;
  const long long whole_a = count_a / n_a * n_a, whole_b = count_b / n_b * n_b;
  for (long long b = 0; b < whole_b; b += n_b) {
#pragma GCC unroll 4
    for (long long a = 0; a < whole_a; a += n_a)
      transpose_chunk<Width, Bytes, false>(tile, source + a * tile.source_stride + b * Width,
                                           target + b * tile.target_stride + a * Width);
  }
  transpose_elements<Width>(count_a - whole_a, whole_b, tile, source + whole_a * tile.source_stride,
                            target + whole_a * Width);
  transpose_elements<Width>(count_a, count_b - whole_b, tile, source + whole_b * Width,
                            target + whole_b * tile.target_stride);
}

/// A rectangle of a block, from a0 and b0 up to a1 and b1, which is moved before the next one.
struct Patch {
  long long a0, a1, b0, b1;
};

/// Transposes the whole tiles of a patch, and prefetches the next patch meanwhile, as many lines per tile as a tile
/// has.
template <int Width, int Bytes, Stores Kind>
TRANSHIP_INLINE void transpose_patch(const Patch& patch, const Patch& next, const Plane& tile, const Byte* source,
                                     Byte* target) {
  constexpr long long n = line_bytes / Width;
  const long long fetched_bytes = (next.b1 - next.b0) * Width;
  long long row = Kind == Stores::plain ? next.a1 : next.a0, at = 0;
  for (long long b = patch.b0; b < patch.b1; b += n)
    for (long long a = patch.a0; a < patch.a1; a += n) {
      Byte* to = target + b * tile.target_stride + a * Width;
      for (int i = 0; i < n && row < next.a1; ++i) {
        __builtin_prefetch(source + row * tile.source_stride + next.b0 * Width + at);
        at += line_bytes;
        if (at >= fetched_bytes) at = 0, ++row;
      }
      if constexpr (Kind == Stores::prefetched)
        for (int i = 0; i < n; ++i) prefetch_to_write(to + i * tile.target_stride + line_bytes);
      transpose_tile<Width, Bytes, Kind == Stores::streaming>(tile, source + a * tile.source_stride + b * Width, to);
    }
}

/// Transposes whole tiles, in patches of some lines on either side, so that both sides are accessed some lines at a
/// time. Streamed tiles follow the rows of the source, because nothing of the target is read; a page of each row at a
/// time, so that the target touches few pages at once.
template <int Width, int Bytes, Stores Kind>
TRANSHIP_INLINE void transpose_tiles(long long count_a, long long count_b, const Plane& tile, const Byte* source,
                                     Byte* target) {
  constexpr bool along_source = Kind == Stores::streaming;
  constexpr long long n = line_bytes / Width, side_a = 4 * n, side_b = (along_source ? 16 : 4) * n;
  const long long strip = along_source ? page_bytes / Width : count_b;
  for (long long first_b = 0; first_b < count_b; first_b += strip) {
    const long long end_b = first_b + strip < count_b ? first_b + strip : count_b;
    const auto patch_at = [&](long long a, long long b) {
      return Patch{a, a + side_a < count_a ? a + side_a : count_a, b, b + side_b < end_b ? b + side_b : end_b};
    };
    for (Patch patch = patch_at(0, first_b);;) {
      Patch next = along_source ? patch_at(patch.a0, patch.b1) : patch_at(patch.a1, patch.b0);
      if (along_source && patch.b1 == end_b) next = patch_at(patch.a1, first_b);
      if (!along_source && patch.a1 == count_a) next = patch_at(0, patch.b1);
      const bool is_last = next.a0 >= count_a || next.b0 >= end_b;
      transpose_patch<Width, Bytes, Kind>(patch, is_last ? Patch{} : next, tile, source, target);
      if (is_last) break;
      patch = next;
    }
  }
}

template <int Width, int Bytes>
TRANSHIP_INLINE void transpose(long long count_a, long long count_b, const Plane& tile, Stores stores,
                               const Byte* source, Byte* target) {
  constexpr long long n = line_bytes / Width;
  // Target rows that begin at equal offsets within a line can be written in whole lines.
  const bool in_step = tile.target_stride % line_bytes == 0 && bytes_to_line(target) % Width == 0;
  const long long first_a = in_step ? bytes_to_line(target) / Width : 0;
  const long long tiles_a = count_a > first_a ? (count_a - first_a) / n * n : 0, tiles_b = count_b / n * n;
  if (tiles_a == 0 || tiles_b == 0) return transpose_margin<Width, Bytes>(count_a, count_b, tile, source, target);
  const Byte* from = source + first_a * tile.source_stride;
  Byte* to = target + first_a * Width;
  if (stores == Stores::streaming && in_step)
    transpose_tiles<Width, Bytes, Stores::streaming>(tiles_a, tiles_b, tile, from, to);
  else if (stores != Stores::plain)
    transpose_tiles<Width, Bytes, Stores::prefetched>(tiles_a, tiles_b, tile, from, to);
  else
    transpose_tiles<Width, Bytes, Stores::plain>(tiles_a, tiles_b, tile, from, to);
  const long long end_a = first_a + tiles_a;
  transpose_margin<Width, Bytes>(first_a, tiles_b, tile, source, target);
  transpose_margin<Width, Bytes>(count_a - end_a, tiles_b, tile, source + end_a * tile.source_stride,
                                 target + end_a * Width);
  transpose_margin<Width, Bytes>(count_a, count_b - tiles_b, tile, source + tiles_b * Width,
                                 target + tiles_b * tile.target_stride);
}

template <int Width>
void transpose_16(long long count_a, long long count_b, const Plane& tile, Stores stores, const Byte* source,
                  Byte* target) {
  transpose<Width, 16>(count_a, count_b, Plane(tile), stores, source, target);
}
#if defined(__x86_64__)
template <int Width>
[[gnu::target("avx2")]] void transpose_32(long long count_a, long long count_b, const Plane& tile, Stores stores,
                                          const Byte* source, Byte* target) {
  transpose<Width, 32>(count_a, count_b, Plane(tile), stores, source, target);
}
#endif

template <int Width>
void copy_transposed(long long count_a, long long count_b, const Plane& tile, CopyMethod way, const Byte* source,
                     Byte* target) {
#if defined(__x86_64__)
  if (way.simd == Simd::bytes32) return transpose_32<Width>(count_a, count_b, tile, way.stores, source, target);
#endif
  transpose_16<Width>(count_a, count_b, tile, way.stores, source, target);
}

using Transpose = void (*)(long long count_a, long long count_b, const Plane& tile, CopyMethod way, const Byte* source,
                           Byte* target);

Transpose transpose_of(int width) {
  switch (width) {
    case 1:
      return &copy_transposed<1>;
    case 2:
      return &copy_transposed<2>;
    case 4:
      return &copy_transposed<4>;
    case 8:
      return &copy_transposed<8>;
    default:
      return &copy_transposed<16>;
  }
}

/// Transposes into a buffer that stays in the nearest cache, and moves from there in rows.
struct BufferedTranspose {
  Transpose transpose;
  RowCopy move_rows;
  int width;

  void operator()(long long count_a, long long count_b, const Plane& tile, CopyMethod way, const Byte* source,
                  Byte* target) const {
    constexpr long long row_bytes = 256;
    const long long side_a = row_bytes / width, side_b = line_bytes / width;
    Byte buffer[row_bytes * line_bytes];
    for (long long b = 0; b < count_b; b += side_b)
      for (long long a = 0; a < count_a; a += side_a) {
        const long long n_a = std::min(count_a - a, side_a), n_b = std::min(count_b - b, side_b);
        transpose(n_a, n_b, {tile.source_stride, row_bytes}, {way.simd, Stores::plain},
                  source + a * tile.source_stride + b * width, buffer);
        move_rows({n_b, n_a * width, row_bytes, tile.target_stride, 1, 0, 0}, buffer,
                  target + b * tile.target_stride + a * width);
      }
  }
};

void drop_dimension(CopyBlock& block, int d) {
  for (--block.dims; d < block.dims; ++d) detail::set_dimension(block, d, block, d + 1);
}

}  // namespace

void move_in_tiles(CopyBlock block, ElementMap move, Arithmetic arithmetic, int width, CopyMethod way,
                   const Byte* source, Byte* target) {
  const int a = block.dims - 1, b = tile_dimension(block, width);
  const Plane tile{block.source_strides[a], block.target_strides[b]};
  const long long count_a = block.extents[a], count_b = block.extents[b];
  drop_dimension(block, a);
  drop_dimension(block, b);
  const Transpose transpose = transpose_of(width);
  if (move != ElementMap::copy) {
    const BufferedTranspose buffered{transpose, row_move(move, arithmetic, width, way.simd), width};
    return for_each_base(block, source, target,
                         [&](const Byte* from, Byte* to) { buffered(count_a, count_b, tile, way, from, to); });
  }
  if (copy_narrow_tiles(block, tile, count_a, count_b, width, source, target)) return;
  for_each_base(block, source, target,
                [&](const Byte* from, Byte* to) { transpose(count_a, count_b, tile, way, from, to); });
}

}  // namespace tranship::loops
