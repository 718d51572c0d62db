// Rows of bytes: short rows of known length, medium rows by the library, long rows by vectors, strings or streaming
// stores.
#include <array>
#include <utility>

#include <tranship/kernels/host/host_loops.hpp>

namespace tranship {
namespace loops {
namespace {

// Prefetch distances. Measured: 512 to 1536 bytes and 8 to 32 rows are within 3 % of each other.
constexpr long long ahead_bytes = 768;
constexpr long long ahead_rows = 16;

/// Rows in the caches are not prefetched: two requests cost as much as the row itself.
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

/// Copies a row of at least four vectors: the first and the last four unaligned, and aligned stores between them.
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

/// Streams only whole lines: a plain store into a line that is being streamed would push it out in parts.
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

/// In rows up to this length, prefetching reaches some rows ahead; in longer ones, ahead in the row.
constexpr long long shorter_row_bytes_max = 4 * ahead_bytes;

/// Planes with this few rows end before the CPU's own prefetcher adapts, since it does not cross pages.
constexpr long long few_rows_max = 8;
/// Medium rows are prefetched this many rows ahead; 3 to 8 are within 5 % of each other.
constexpr long long ahead_medium_rows = 4;
/// Rows that may be in the nearest cache are not prefetched: that would cost a third of its speed.
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

TRANSHIP_INLINE void move_string(long long bytes, const Byte* source, Byte* target) {
#if defined(__x86_64__) && !defined(TRANSHIP_SANITIZED)
  asm volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
#else
  copy_row(bytes, source, target);  // sanitizers do not see accesses in assembly
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

#if defined(__x86_64__)
template <bool Fetched>
[[gnu::target("avx2")]] void copy_long_rows_32(const Rows& rows, const void* source, void* target) {
  copy_long_rows<32, Fetched>(rows, source, target);
}
[[gnu::target("avx2")]] void copy_string_rows_32(const Rows& rows, const void* source, void* target) {
  copy_string_rows<32>(rows, source, target);
}
#endif

template <bool Fetched>
RowCopy long_row_copy([[maybe_unused]] Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::bytes32) return copy_long_rows_32<Fetched>;
#endif
  return copy_long_rows_16<Fetched>;
}

}  // namespace

void copy_rows_streamed(const Rows& rows, const void* source, void* target) {
  const long long ahead =
      rows.row_bytes > shorter_row_bytes_max || rows.count == 1 ? ahead_bytes : 4 * rows.source_stride;
  for_each_row(rows, source, target,
               [&](const Byte* from, Byte* to) { copy_streamed(rows.row_bytes, from, from + ahead, to); });
}

RowCopy string_row_copy([[maybe_unused]] Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::bytes32) return copy_string_rows_32;
#endif
  return copy_string_rows_16;
}

}  // namespace loops

RowCopy row_copy(long long row_bytes, CopyMethod way) {
  const bool fetched = way.stores != Stores::plain;
  if (row_bytes <= loops::short_row_bytes_max)
    return fetched ? loops::short_rows<true>[row_bytes - 1] : loops::short_rows<false>[row_bytes - 1];
  if (way.stores == Stores::streaming && row_bytes >= loops::streamed_row_bytes_min) return loops::copy_rows_streamed;
  if (way.long_rows == LongRows::string && !fetched && row_bytes >= loops::string_row_bytes_min)
    return loops::string_row_copy(way.simd);
  if (row_bytes > loops::medium_row_bytes_max)
    return fetched ? loops::long_row_copy<true>(way.simd) : loops::long_row_copy<false>(way.simd);
  return way.stores == Stores::prefetched ? loops::copy_medium_rows_prefetched : loops::copy_medium_rows;
}

void copy_row(void* target, const void* source, long long bytes, CopyMethod way) {
  if (bytes <= 0) return;
  row_copy(bytes, way)(Rows{.row_bytes = bytes}, source, target);
  order_stores(way);
}

}  // namespace tranship
