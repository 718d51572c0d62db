// Tiles with 2 to 4 elements on one side, which are too narrow for vectors.
#include <algorithm>

#include <tranship/kernels/host/host_loops.hpp>

namespace tranship::loops {
namespace {

/// If each row of a plane has its own line, prefetch this many planes ahead; 2 to 8 are within 10 % of each other.
constexpr long long ahead_planes = 3;

/// Copies planes with `Narrow` elements on one side. On the other side, each row lies in one or two lines of its own,
/// far from the next row. The lines of a later plane are prefetched meanwhile.
template <int Width, int Narrow>
void copy_narrow_planes(const CopyBlock& around, const Plane& tile, long long count_a, long long count_b,
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

template <int Width>
bool copy_narrow_tiles_of(const CopyBlock& around, const Plane& tile, long long count_a, long long count_b,
                          const Byte* source, Byte* target) {
  switch (std::min(count_a, count_b)) {
    case 2:
      copy_narrow_planes<Width, 2>(around, tile, count_a, count_b, source, target);
      return true;
    case 3:
      copy_narrow_planes<Width, 3>(around, tile, count_a, count_b, source, target);
      return true;
    case 4:
      copy_narrow_planes<Width, 4>(around, tile, count_a, count_b, source, target);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool copy_narrow_tiles(const CopyBlock& around, const Plane& tile, long long count_a, long long count_b, int width,
                       const Byte* source, Byte* target) {
  if (around.dims == 0) return false;
  switch (width) {
    case 4:
      return copy_narrow_tiles_of<4>(around, tile, count_a, count_b, source, target);
    case 8:
      return copy_narrow_tiles_of<8>(around, tile, count_a, count_b, source, target);
    case 16:
      return copy_narrow_tiles_of<16>(around, tile, count_a, count_b, source, target);
    default:  // narrower elements are transposed faster
      return false;
  }
}

}  // namespace tranship::loops
