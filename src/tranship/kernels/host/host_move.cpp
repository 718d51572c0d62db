// Three loops (rows, tiles, elements), each compiled for two widths of vector registers: what is marked `always inline`
// takes the target of the function that it is inlined into. No inline function may be compiled for AVX2 on its own: the
// linker might choose it for the whole program.
#include "tranship/kernels/host/host_move.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <tranship/base/sanitizers.hpp>
#include <tranship/kernels/host/peer_writes.hpp>
#include <tranship/kernels/strided_copy.hpp>

// GCC notes that vectors wider than the baseline's are passed in another way; nothing here is passed, all is inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

// Sanitizers check every access of what is inlined: a minute of compiling, where calls find the same.
#if defined(TRANSHIP_SANITIZED)
#define TRANSHIP_INLINE inline
#else
#define TRANSHIP_INLINE [[gnu::always_inline]] inline
#endif

namespace tranship {
namespace {

using Byte = unsigned char;

// How far ahead memory is asked for. Measured: 512 to 1536 bytes and 8 to 32 rows are within 3 % of each other.
constexpr long long ahead_bytes = 768;
constexpr long long ahead_rows = 16;
/// Of planes that have a line for each row, 2 to 8 are within 10 % of each other.
constexpr long long ahead_planes = 3;

TRANSHIP_INLINE void prefetch_to_write(const Byte* line) {
#if defined(__x86_64__)
  // The compiler's prefetch for writing is the one for reading unless the whole build is for a CPU that has this one.
  // CPUs without it do nothing.
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

// Rows.

constexpr long long short_row_bytes_max = 64;
/// Up to here the library's copy is as good as any while the caches hold the data. Beyond, it may turn to one
/// instruction (rep movsb) that is twenty times as slow for some alignments on some CPUs.
constexpr long long medium_row_bytes_max = 1024;
/// From here on a string move is at least as fast as a loop of vectors that the nearest cache holds.
constexpr long long string_row_bytes_min = 8192;
/// Shorter rows have too few whole lines for streaming stores to pay.
constexpr long long streamed_row_bytes_min = 512;

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

/// What the caches hold is not fetched: two requests cost as much as the row itself.
template <int Bytes, bool Fetched>
void copy_short_rows(const Rows& rows, const void* source, void* target) {
  const long long from_stride = rows.source_stride, to_stride = rows.target_stride;
  for_each_plane(rows, source, target, [&](const Byte* from, Byte* to) {
#pragma GCC unroll 4
    for (long long i = 0; i < rows.count; ++i) {
      if (Fetched) {
        __builtin_prefetch(from + ahead_rows * from_stride);
        prefetch_to_write(to + ahead_rows * to_stride);
      }
      copy_bytes<Bytes>(from, to);
      from += from_stride;
      to += to_stride;
    }
  });
}

template <bool Fetched, int... Bytes>
constexpr std::array<RowCopy, sizeof...(Bytes)> short_rows_table(std::integer_sequence<int, Bytes...>) {
  return {&copy_short_rows<Bytes + 1, Fetched>...};
}
template <bool Fetched>
constexpr auto short_rows = short_rows_table<Fetched>(std::make_integer_sequence<int, int(short_row_bytes_max)>{});

TRANSHIP_INLINE void copy_row(long long bytes, const Byte* source, Byte* target) {
  __builtin_memcpy(target, source, static_cast<unsigned long>(bytes));
}

/// At least four vectors: the first and the last four as they lie, and between them aligned stores.
template <int Vector, bool Fetched>
TRANSHIP_INLINE void copy_long_row(long long bytes, const Byte* source, Byte* target) {
  constexpr long long step = 4LL * Vector;
  copy_bytes<Vector>(source, target);
  for (long long at = Vector - static_cast<long long>(reinterpret_cast<unsigned long long>(target) % Vector);
       at + step < bytes; at += step) {
    if (Fetched)
      for (long long line = 0; line < step; line += line_bytes) prefetch_to_write(target + at + ahead_bytes + line);
#pragma GCC unroll 4
    for (long long i = at; i < at + step; i += Vector) copy_bytes<Vector>(source + i, target + i);
  }
#pragma GCC unroll 4
  for (long long i = bytes - step; i < bytes; i += Vector) copy_bytes<Vector>(source + i, target + i);
}

/// Lines are streamed whole or not at all: a plain store into a line that is being streamed would push it out in parts.
TRANSHIP_INLINE void copy_streamed(long long bytes, const Byte* source, const Byte* source_ahead, Byte* target) {
  long long at = bytes_to_line(target);
  copy_row(at, source, target);
  for (; at + line_bytes <= bytes; at += line_bytes) {
    __builtin_prefetch(source_ahead + at);
#pragma GCC unroll 4
    for (int i = 0; i < line_bytes; i += 16) stream16(source + at + i, target + at + i);
  }
  copy_row(bytes - at, source + at, target + at);
}

/// What comes next in a long row lies in the row, in a shorter one some rows on.
constexpr long long shorter_row_bytes_max = 4 * ahead_bytes;

/// Planes of so few rows end before a CPU's own prefetching has found its way: it does not go from page to page.
constexpr long long few_rows_max = 8;
constexpr long long page_bytes = 4096;
/// Medium rows are asked for so many rows before they are copied; 3 to 8 are within 5 % of each other.
constexpr long long ahead_medium_rows = 4;
/// What the nearest cache may hold is not asked for: that would take a third of its speed.
constexpr long long fetched_rows_bytes_min = 32 << 10;

TRANSHIP_INLINE bool is_far(long long plane_bytes) {
  return plane_bytes >= page_bytes || plane_bytes <= -page_bytes;
}

/// Calls f(line) for each cache line of a row.
template <class F>
TRANSHIP_INLINE void for_each_line(const Byte* row, long long bytes, F&& f) {
  const Byte* const end = row + bytes;
  for (const Byte* line = row - (reinterpret_cast<unsigned long long>(row) & (line_bytes - 1)); line < end;
       line += line_bytes)
    f(line);
}

void copy_medium_rows(const Rows& rows, const void* source, void* target) {
  const bool few = rows.planes > 1 && rows.count <= few_rows_max;
  const bool fetches_target = few && is_far(rows.target_plane);
  const bool fetches_source =
      (few && is_far(rows.source_plane)) || rows.row_bytes * rows.count * rows.planes >= fetched_rows_bytes_min;
  if (!fetches_source && !fetches_target)
    return for_each_row(rows, source, target, [&](const Byte* from, Byte* to) { copy_row(rows.row_bytes, from, to); });
  long long plane = ahead_medium_rows / rows.count, row = ahead_medium_rows % rows.count;
  for_each_row(rows, source, target, [&](const Byte* from, Byte* to) {
    if (plane < rows.planes) {
      if (fetches_source)
        for_each_line(static_cast<const Byte*>(source) + plane * rows.source_plane + row * rows.source_stride,
                      rows.row_bytes, [](const Byte* line) { __builtin_prefetch(line); });
      if (fetches_target)
        for_each_line(static_cast<const Byte*>(target) + plane * rows.target_plane + row * rows.target_stride,
                      rows.row_bytes, [](const Byte* line) { prefetch_to_write(line); });
      if (++row == rows.count) row = 0, ++plane;
    }
    copy_row(rows.row_bytes, from, to);
  });
}

void copy_rows_streamed(const Rows& rows, const void* source, void* target) {
  const long long ahead =
      rows.row_bytes > shorter_row_bytes_max || rows.count == 1 ? ahead_bytes : 4 * rows.source_stride;
  for_each_row(rows, source, target,
               [&](const Byte* from, Byte* to) { copy_streamed(rows.row_bytes, from, from + ahead, to); });
}

void copy_medium_rows_prefetched(const Rows& rows, const void* source, void* target) {
  for_each_row(rows, source, target, [&](const Byte* from, Byte* to) {
    for (long long at = 0; at < rows.row_bytes; at += line_bytes) prefetch_to_write(to + 4 * rows.target_stride + at);
    copy_row(rows.row_bytes, from, to);
  });
}

template <int Vector, bool Fetched>
TRANSHIP_INLINE void copy_long_rows(const Rows& rows, const void* source, void* target) {
  for_each_row(rows, source, target,
               [&](const Byte* from, Byte* to) { copy_long_row<Vector, Fetched>(rows.row_bytes, from, to); });
}
template <bool Fetched>
void copy_long_rows_16(const Rows& rows, const void* source, void* target) {
  copy_long_rows<16, Fetched>(rows, source, target);
}

/// Whether string moves are fast there: some CPUs stumble over a target that lies less than a line behind its source
/// in its page.
TRANSHIP_INLINE bool suits_strings(const Byte* source, const Byte* target) {
  const unsigned long long apart =
      (reinterpret_cast<unsigned long long>(target) - reinterpret_cast<unsigned long long>(source)) % 4096;
  return apart == 0 || apart >= static_cast<unsigned long long>(line_bytes);
}

TRANSHIP_INLINE void move_string(long long bytes, const Byte* source, Byte* target) {
#if defined(__x86_64__) && !defined(TRANSHIP_SANITIZED)
  asm volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
#else
  copy_row(bytes, source, target);  // sanitizers do not look into assembly
#endif
}

template <int Vector>
TRANSHIP_INLINE void copy_string_rows(const Rows& rows, const void* source, void* target) {
  for_each_row(rows, source, target, [&](const Byte* from, Byte* to) {
    if (suits_strings(from, to))
      move_string(rows.row_bytes, from, to);
    else
      copy_long_row<Vector, false>(rows.row_bytes, from, to);
  });
}
void copy_string_rows_16(const Rows& rows, const void* source, void* target) {
  copy_string_rows<16>(rows, source, target);
}

template <class Element>
void move_rows_16(const Rows& rows, const Byte* source, Byte* target) {
  for_each_row(rows, source, target, [&](const Byte* from, Byte* to) {
    detail::move_contiguous_row<Element>(rows.row_bytes / Element::width, from, to);
  });
}

#if defined(__x86_64__)
template <bool Fetched>
[[gnu::target("avx2")]] void copy_long_rows_32(const Rows& rows, const void* source, void* target) {
  copy_long_rows<32, Fetched>(rows, source, target);
}
[[gnu::target("avx2")]] void copy_string_rows_32(const Rows& rows, const void* source, void* target) {
  copy_string_rows<32>(rows, source, target);
}
/// f16 has instructions of its own; what two of them make is exact enough in f32 (half.hpp).
using F16 = detail::Half<float_of_f16, f16_of_float>;
template <class Element>
constexpr ElementMap f16_move = ElementMap::copy;
template <ElementMap move>
constexpr ElementMap f16_move<detail::CombineElement<F16, move>> = move;

template <ElementMap move>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 combined(__m256 a, __m256 b) {
  if constexpr (move == ElementMap::accumulate) return _mm256_add_ps(a, b);
  if constexpr (move == ElementMap::accumulate_negated) return _mm256_sub_ps(a, b);
  if constexpr (move == ElementMap::multiply) return _mm256_mul_ps(a, b);
  // Where two numbers are equal, or one is no number, these take the second.
  const __m256 chosen = move == ElementMap::minimum ? _mm256_min_ps(b, a) : _mm256_max_ps(b, a);
  return _mm256_blendv_ps(chosen, b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}

template <class Element>
[[gnu::target("avx2,f16c")]] void combine_f16_row(long long count, const Byte* source, Byte* target) {
  const __m128i nan = _mm_set1_epi16(0x7e00);
  long long i = 0;
  for (; i + 8 <= count; i += 8) {
    const auto* from = reinterpret_cast<const __m128i*>(source + 2 * i);
    auto* to = reinterpret_cast<__m128i*>(target + 2 * i);
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(to)), b = _mm256_cvtph_ps(_mm_loadu_si128(from));
    const __m256 value = combined<f16_move<Element>>(a, b);
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m128i is_nan_16 = _mm_packs_epi32(_mm256_castsi256_si128(is_nan), _mm256_extracti128_si256(is_nan, 1));
    _mm_storeu_si128(to, _mm_blendv_epi8(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT), nan, is_nan_16));
  }
  for (; i < count; ++i) Element::apply(source + 2 * i, target + 2 * i);
}

template <class Element>
[[gnu::target("avx2,f16c"), gnu::flatten]] void move_rows_32(const Rows& rows, const Byte* source, Byte* target) {
  for_each_row(rows, source, target, [&](const Byte* from, Byte* to) {
    const long long count = rows.row_bytes / Element::width;
    if constexpr (f16_move<Element> == ElementMap::copy)
      detail::move_contiguous_row<Element>(count, from, to);
    else
      combine_f16_row<Element>(count, from, to);
  });
}
#endif

template <class Element>
void move_rows(const Rows& rows, CopyMethod way, const Byte* source, Byte* target) {
  if constexpr (Element::is_copy) return row_copy(rows.row_bytes, way)(rows, source, target);
#if defined(__x86_64__)
  if (way.simd == Simd::bytes32) return move_rows_32<Element>(rows, source, target);
#endif
  move_rows_16<Element>(rows, source, target);
}

// Tiles. Dimension a is contiguous in the target, b in the source:
//
//          b -->                          a -->
//      a   s00 s01 s02 s03            b   s00 s10 s20 s30
//      |   s10 s11 s12 s13    ==>     |   s01 s11 s21 s31
//      v   s20 s21 s22 s23            v   ...
//
// A tile is a cache line long in both directions, so that every line is read and written whole. It is made of chunks
// that are transposed in registers: rows are loaded in lanes of 16 bytes and interleaved log2(elements per lane) times.

/// Takes elements of the lower (or upper) halves of each lane of a and b in turn.
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

/// Bytes/16 lanes, from addresses `lane_stride` apart.
template <int Bytes>
TRANSHIP_INLINE void load_lanes(VectorOf<Bytes>& out, const Byte* source, long long lane_stride) {
  if constexpr (Bytes == 16) {
    __builtin_memcpy(&out, source, 16);
  } else {
    VectorOf<16> low;
    __builtin_memcpy(&low, source, 16);
#if defined(__x86_64__) && !defined(TRANSHIP_SANITIZED) && !defined(__clang__)
    // GCC would load the upper lane by itself, and shuffle then. (clang does this by itself.)
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

struct Plane {
  long long source_stride;  ///< of a
  long long target_stride;  ///< of b
};

/// Bytes/Width elements along a, 16/Width along b.
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

/// A tile of narrow elements has more lines than a cache has ways for, or a core has buffers for streaming: it goes
/// through a buffer.
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

/// What is too narrow for vectors.
template <int Width>
TRANSHIP_INLINE void transpose_elements(long long count_a, long long count_b, const Plane& tile, const Byte* source,
                                        Byte* target) {
  for (long long b = 0; b < count_b; ++b)
    for (long long a = 0; a < count_a; ++a)
      copy_bytes<Width>(source + a * tile.source_stride + b * Width, target + b * tile.target_stride + a * Width);
}

/// The margins of a block: chunks, and elements in the margins of these.
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

/// Elements of a block that are moved one after the other, from a0 and b0 up to a1 and b1.
struct Patch {
  long long a0, a1, b0, b1;
};

/// Whole tiles of a patch; meanwhile the next one is fetched, as many lines a tile as a tile has.
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

/// Whole tiles, in patches of some lines on either side, so that both are read and written some lines at a time. What
/// is streamed goes along the rows of the source, for nothing has to be read of the target; a page of each row at a
/// time, so that the target's pages are few enough to be found quickly.
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
  // Rows of the target that all begin at the same place of a line can be written in whole lines.
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

/// Other moves are transposed by copies into a buffer that stays in the nearest cache, and moved from there in rows.
template <class Element>
void move_transposed(long long count_a, long long count_b, const Plane& tile, CopyMethod way, const Byte* source,
                     Byte* target) {
  constexpr int width = Element::width;
  if constexpr (Element::is_copy) {
    copy_transposed<width>(count_a, count_b, tile, way, source, target);
  } else {
    constexpr long long side_a = 256 / width, side_b = line_bytes / width;
    Byte buffer[side_a * side_b * width];
    for (long long b = 0; b < count_b; b += side_b)
      for (long long a = 0; a < count_a; a += side_a) {
        const long long n_a = count_a - a < side_a ? count_a - a : side_a;
        const long long n_b = count_b - b < side_b ? count_b - b : side_b;
        copy_transposed<width>(n_a, n_b, {tile.source_stride, side_a * width}, {way.simd, Stores::plain},
                               source + a * tile.source_stride + b * width, buffer);
        move_rows<Element>({n_b, n_a * width, side_a * width, tile.target_stride, 1, 0, 0}, way, buffer,
                           target + b * tile.target_stride + a * width);
      }
  }
}

// Shapes.

/// Along which dimension a block's source is contiguous and its target is not; -1 where there is none.
int tile_dimension(const CopyBlock& block, int width) {
  for (int d = block.dims - 2; d >= 0; --d)
    if (block.source_strides[d] == width) return d;
  return -1;
}

/// Whether elements lie lines apart: each is a row of its own, so that they are fetched ahead as rows are.
bool is_sparse(const CopyBlock& block) {
  const int last = block.dims - 1;
  return detail::magnitude(block.source_strides[last]) >= line_bytes ||
         detail::magnitude(block.target_strides[last]) >= line_bytes;
}

/// Whether each target element is reached once, so that the order does not matter.
bool is_free_of_order(const CopyBlock& block, int width) {
  for (int d = 0; d < block.dims; ++d)
    if (block.target_strides[d] == 0) return false;
  return detail::target_is_nested(block, width);
}

/// The same elements, dimension d walked the other way.
void turn_round(CopyBlock& block, int d, const Byte*& source, Byte*& target) {
  source += (block.extents[d] - 1) * block.source_strides[d];
  target += (block.extents[d] - 1) * block.target_strides[d];
  block.source_strides[d] = -block.source_strides[d];
  block.target_strides[d] = -block.target_strides[d];
}

void drop_dimension(CopyBlock& block, int d) {
  for (--block.dims; d < block.dims; ++d) detail::set_dimension(block, d, block, d + 1);
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

/// The last dimension is the row, or else every element is one.
template <class Element>
void move_in_rows(CopyBlock block, CopyMethod way, const Byte* source, Byte* target) {
  const Rows rows = take_rows(block, Element::width);
  for_each_base(block, source, target, [&](const Byte* from, Byte* to) { move_rows<Element>(rows, way, from, to); });
}

/// Planes of `Narrow` elements on one side: on the other side, each of these lies in a line of its own, far from the
/// next one, or in two. The lines of a plane that comes soon are asked for while this one is moved.
template <int Width, int Narrow>
void copy_narrow_tiles(const CopyBlock& around, const Plane& tile, long long count_a, long long count_b,
                       const Byte* source, Byte* target) {
  const int last = around.dims - 1;
  const long long next_source = ahead_planes * around.source_strides[last], next_target = around.target_strides[last];
  const bool source_is_far = count_b == Narrow;
  for_each_base(around, source, target, [&](const Byte* from, Byte* to) {
    if (source_is_far) {
      for (long long a = 0; a < count_a; ++a, from += tile.source_stride, to += Width) {
        __builtin_prefetch(from + next_source);
        __builtin_prefetch(from + next_source + (Narrow * Width - 1));
#pragma GCC unroll 4
        for (long long b = 0; b < Narrow; ++b) copy_bytes<Width>(from + b * Width, to + b * tile.target_stride);
      }
    } else {
      for (long long b = 0; b < count_b; ++b, from += Width, to += tile.target_stride) {
        prefetch_to_write(to + next_target);
#pragma GCC unroll 4
        for (long long a = 0; a < Narrow; ++a) copy_bytes<Width>(from + a * tile.source_stride, to + a * Width);
      }
    }
  });
}

/// True when it has moved them: elements of 4 bytes and more, of which 2 to 4 lie together.
template <class Element>
bool move_narrow_tiles(const CopyBlock& around, const Plane& tile, long long count_a, long long count_b,
                       const Byte* source, Byte* target) {
  if constexpr (Element::is_copy && Element::width >= 4) {
    if (around.dims == 0) return false;
    switch (std::min(count_a, count_b)) {
      case 2:
        copy_narrow_tiles<Element::width, 2>(around, tile, count_a, count_b, source, target);
        return true;
      case 3:
        copy_narrow_tiles<Element::width, 3>(around, tile, count_a, count_b, source, target);
        return true;
      case 4:
        copy_narrow_tiles<Element::width, 4>(around, tile, count_a, count_b, source, target);
        return true;
      default:
        break;
    }
  }
  return false;
}

template <class Element>
void move_in_tiles(CopyBlock block, CopyMethod way, const Byte* source, Byte* target) {
  const int a = block.dims - 1, b = tile_dimension(block, Element::width);
  const Plane tile{block.source_strides[a], block.target_strides[b]};
  const long long count_a = block.extents[a], count_b = block.extents[b];
  drop_dimension(block, a);
  drop_dimension(block, b);
  if (move_narrow_tiles<Element>(block, tile, count_a, count_b, source, target)) return;
  for_each_base(block, source, target,
                [&](const Byte* from, Byte* to) { move_transposed<Element>(count_a, count_b, tile, way, from, to); });
}

/// The longer of the two last dimensions is walked innermost, four elements of the other one at a time.
template <class Element>
void move_in_elements(CopyBlock block, const Byte* source, Byte* target) {
  const int last = block.dims - 1;
  if (block.dims > 1 && block.extents[last] < block.extents[last - 1]) {
    const CopyBlock before = block;
    detail::set_dimension(block, last, before, last - 1);
    detail::set_dimension(block, last - 1, before, last);
  }
  const long long count = block.extents[last], count_outer = block.dims > 1 ? block.extents[last - 1] : 1;
  const long long ss = block.source_strides[last], ts = block.target_strides[last];
  const long long so = block.dims > 1 ? block.source_strides[last - 1] : 0;
  const long long to = block.dims > 1 ? block.target_strides[last - 1] : 0;
  block.dims = block.dims > 1 ? block.dims - 2 : 0;
  for_each_base(block, source, target, [&](const Byte* s, Byte* t) {
    long long outer = 0;
    for (; outer + 4 <= count_outer; outer += 4) {
      const Byte* from = s + outer * so;
      Byte* into = t + outer * to;
      for (long long i = 0; i < count; ++i) {
        Element::apply(from + i * ss, into + i * ts);
        Element::apply(from + i * ss + so, into + i * ts + to);
        Element::apply(from + i * ss + 2 * so, into + i * ts + 2 * to);
        Element::apply(from + i * ss + 3 * so, into + i * ts + 3 * to);
      }
    }
    for (; outer < count_outer; ++outer)
      for (long long i = 0; i < count; ++i) Element::apply(s + outer * so + i * ss, t + outer * to + i * ts);
  });
}

/// Products, minima and maxima are rare, and a loop for every shape of every number takes room: they have vectors for
/// contiguous rows, and the plain loop for everything else.
template <class Element>
constexpr bool has_rows_only = false;
template <class Number, ElementMap move>
constexpr bool has_rows_only<detail::CombineElement<Number, move>> =
    move == ElementMap::multiply || move == ElementMap::minimum || move == ElementMap::maximum;

template <class Element>
void move_in_long_rows(CopyBlock block, BlockShape shape, [[maybe_unused]] CopyMethod way, const Byte* source,
                       Byte* target) {
#if defined(__x86_64__)
  if (way.simd == Simd::bytes32 && shape == BlockShape::rows && has_contiguous_rows(block, Element::width)) {
    const Rows rows = take_rows(block, Element::width);
    return for_each_base(block, source, target,
                         [&](const Byte* from, Byte* to) { move_rows_32<Element>(rows, from, to); });
  }
#endif
  detail::move_block<Element>(block, source, target);
}

}  // namespace

BlockShape shape_of(const CopyBlock& block, int width) {
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] <= 0) return BlockShape::empty;
  if (block.dims == 0) return BlockShape::rows;
  if (!is_free_of_order(block, width)) return BlockShape::elements;
  const int last = block.dims - 1;
  const bool dense_target = detail::magnitude(block.target_strides[last]) == width;
  if (dense_target && block.source_strides[last] == block.target_strides[last]) return BlockShape::rows;
  if (dense_target)
    for (int d = 0; d < last; ++d)
      if (detail::magnitude(block.source_strides[d]) == width) return BlockShape::tiles;
  return is_sparse(block) ? BlockShape::rows : BlockShape::elements;
}

bool has_contiguous_rows(const CopyBlock& block, int width) {
  const int last = block.dims - 1;
  return last >= 0 && block.source_strides[last] == width && block.target_strides[last] == width;
}

long long row_bytes_of(const CopyBlock& block, int width) {
  return has_contiguous_rows(block, width) ? block.extents[block.dims - 1] * width : width;
}

Rows take_rows(CopyBlock& block, int width) {
  Rows rows{.row_bytes = row_bytes_of(block, width)};
  if (has_contiguous_rows(block, width)) --block.dims;
  if (block.dims > 0) {
    const int d = --block.dims;
    rows.count = block.extents[d];
    rows.source_stride = block.source_strides[d];
    rows.target_stride = block.target_strides[d];
  }
  if (block.dims > 0) {
    const int d = --block.dims;
    rows.planes = block.extents[d];
    rows.source_plane = block.source_strides[d];
    rows.target_plane = block.target_strides[d];
  }
  return rows;
}

void move_on_host(const CopyBlock& block, ElementMap move, Arithmetic arithmetic, int width, CopyMethod way,
                  const void* source, void* target) {
  const BlockShape shape = shape_of(block, width);
  if (shape == BlockShape::empty) return;
  const auto* from = static_cast<const Byte*>(source);
  auto* to = static_cast<Byte*>(target);
  detail::with_element(move, arithmetic, width, [&](auto element) {
    using Element = decltype(element);
    if constexpr (has_rows_only<Element>) return move_in_long_rows<Element>(block, shape, way, from, to);
    if (block.dims > 0 && !is_free_of_order(block, width)) return detail::move_block<Element>(block, from, to);
    CopyBlock upward = block;
    for (int d = 0; d < upward.dims; ++d)
      if (upward.target_strides[d] < 0) turn_round(upward, d, from, to);
    if (shape == BlockShape::rows) return move_in_rows<Element>(upward, way, from, to);
    if (shape == BlockShape::elements) return move_in_elements<Element>(upward, from, to);
    if (tile_dimension(upward, width) < 0)
      for (int d = 0; d < upward.dims - 1; ++d)
        if (upward.source_strides[d] == -width) {
          turn_round(upward, d, from, to);
          break;
        }
    move_in_tiles<Element>(upward, way, from, to);
  });
  order_stores(way);
}

namespace {

RowCopy string_row_copy([[maybe_unused]] Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::bytes32) return copy_string_rows_32;
#endif
  return copy_string_rows_16;
}

template <bool Fetched>
RowCopy long_row_copy([[maybe_unused]] Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::bytes32) return copy_long_rows_32<Fetched>;
#endif
  return copy_long_rows_16<Fetched>;
}

#if defined(__x86_64__)
// Pieces about as large as the last cache. Whether what a string writes is still there for the next string depends on
// what else uses the cache, which other programs and machines share: a piece tries both ways.

constexpr long long tried_bytes = 1 << 20;

void copy_tried_row(long long bytes, const Byte* source, Byte* target, RowCopy string) {
  const auto ticks_of = [&](RowCopy way, long long at) {
    const StoreClock clock;
    way(Rows{.row_bytes = tried_bytes}, source + at, target + at);
    return clock.ticks();
  };
  const unsigned long long ticks = ticks_of(string, 0);
  const bool streams = ticks_of(copy_rows_streamed, tried_bytes) < ticks;
  const long long at = 2 * tried_bytes;
  (streams ? copy_rows_streamed : string)(Rows{.row_bytes = bytes - at}, source + at, target + at);
  _mm_sfence();
}
#endif

}  // namespace

RowCopy row_copy(long long row_bytes, CopyMethod way) {
  const bool fetched = way.stores != Stores::plain;
  if (row_bytes <= short_row_bytes_max)
    return fetched ? short_rows<true>[row_bytes - 1] : short_rows<false>[row_bytes - 1];
  if (way.stores == Stores::streaming && row_bytes >= streamed_row_bytes_min) return copy_rows_streamed;
  if (way.long_rows == LongRows::string && !fetched && row_bytes >= string_row_bytes_min)
    return string_row_copy(way.simd);
  if (row_bytes > medium_row_bytes_max) return fetched ? long_row_copy<true>(way.simd) : long_row_copy<false>(way.simd);
  return way.stores == Stores::prefetched ? copy_medium_rows_prefetched : copy_medium_rows;
}

void copy_row(void* target, const void* source, long long bytes, CopyMethod way) {
  if (bytes <= 0) return;
  row_copy(bytes, way)(Rows{.row_bytes = bytes}, source, target);
  order_stores(way);
}

void copy_piece(void* target, const void* source, long long bytes, PieceOf piece_of, long long traffic_bytes) {
  const auto* const from = static_cast<const Byte*>(source);
  auto* const to = static_cast<Byte*>(target);
  if (bytes <= medium_row_bytes_max) return copy_row(bytes, from, to);
  // What is decided below in more steps, for what lies in the caches and is copied by itself.
  if (bytes < string_row_bytes_min && traffic_bytes <= bytes && suits_strings(from, to))
    return copy_row(bytes, from, to);
  CopyMethod way = copy_method(std::max(bytes, traffic_bytes));
  // Strings read past the caches, and what a peer wrote is in its cache, if that can hold it.
  if (piece_of == PieceOf::source_of_peer && 2 * bytes <= large_traffic_min()) way.long_rows = LongRows::vectors;
  if (piece_of == PieceOf::target_of_peer && way.stores == Stores::plain && is_long_put(bytes)) {
    WriteChoice choice;
    return write_to_peer({.bytes = bytes}, choice, [&](const WrittenPart& part) {
      write_row(to + part.begin, from + part.begin, part.bytes, part.stores);
    });
  }
#if defined(__x86_64__)
  if (way.stores == Stores::streaming && way.long_rows == LongRows::string && bytes >= 16 * tried_bytes)
    return copy_tried_row(bytes, from, to, string_row_copy(way.simd));
#endif
  // What lies in the caches, and is too short for a string of ours or would have been a loop, is for the library.
  const bool is_for_library = way.stores == Stores::plain && suits_strings(from, to) &&
                              (way.long_rows == LongRows::vectors || bytes < string_row_bytes_min);
  if (is_for_library) return copy_row(bytes, from, to);
  copy_row(target, source, bytes, way);
}

void order_stores([[maybe_unused]] CopyMethod way) {
#if defined(__x86_64__)
  if (way.stores == Stores::streaming) _mm_sfence();
#endif
}

}  // namespace tranship
