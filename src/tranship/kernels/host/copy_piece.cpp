// Copies single contiguous pieces by the fastest way for their size and place.
#include <algorithm>

#include <tranship/kernels/host/host_loops.hpp>
#include <tranship/kernels/host/peer_writes.hpp>

namespace tranship {
#if defined(__x86_64__)
namespace {

// Pieces about as large as the last cache. The next string finds what this one writes in the cache only if other
// programs and machines leave it there, so a piece tries both ways.

constexpr long long tried_bytes = 1 << 20;

void copy_tried_row(long long bytes, const loops::Byte* source, loops::Byte* target, RowCopy string) {
  const auto ticks_of = [&](RowCopy way, long long at) {
    const StoreClock clock;
    way(Rows{.row_bytes = tried_bytes}, source + at, target + at);
    return clock.ticks();
  };
  const unsigned long long ticks = ticks_of(string, 0);
  const bool streams = ticks_of(loops::copy_rows_streamed, tried_bytes) < ticks;
  const long long at = 2 * tried_bytes;
  (streams ? loops::copy_rows_streamed : string)(Rows{.row_bytes = bytes - at}, source + at, target + at);
  _mm_sfence();
}

}  // namespace
#endif

void copy_piece(void* target, const void* source, long long bytes, PieceOf piece_of, long long traffic_bytes) {
  const auto* const from = static_cast<const loops::Byte*>(source);
  auto* const to = static_cast<loops::Byte*>(target);
  if (bytes <= loops::medium_row_bytes_max) return loops::copy_row(bytes, from, to);
  // Decides as below in fewer steps, for a piece that lies in the caches and is copied alone.
  if (bytes < loops::string_row_bytes_min && traffic_bytes <= bytes && loops::suits_strings(from, to))
    return loops::copy_row(bytes, from, to);
  CopyMethod way = copy_method(std::max(bytes, traffic_bytes));
  // Strings read past the caches. The peer's cache holds what it wrote, if it is large enough.
  if (piece_of == PieceOf::source_of_peer && 2 * bytes <= large_traffic_min()) way.long_rows = LongRows::vectors;
  if (piece_of == PieceOf::target_of_peer && way.stores == Stores::plain && is_long_put(bytes)) {
    WriteChoice choice;
    return write_to_peer({.bytes = bytes}, choice, [&](const WrittenPart& part) {
      write_row(to + part.begin, from + part.begin, part.bytes, part.stores);
    });
  }
#if defined(__x86_64__)
  if (way.stores == Stores::streaming && way.long_rows == LongRows::string && bytes >= 16 * tried_bytes)
    return copy_tried_row(bytes, from, to, loops::string_row_copy(way.simd));
#endif
  // The library copies pieces that lie in the caches and are too short for a string, or would otherwise take a loop.
  const bool is_for_library = way.stores == Stores::plain && loops::suits_strings(from, to) &&
                              (way.long_rows == LongRows::vectors || bytes < loops::string_row_bytes_min);
  if (is_for_library) return loops::copy_row(bytes, from, to);
  copy_row(target, source, bytes, way);
}

}  // namespace tranship
