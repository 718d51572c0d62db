#include "tranship/kernels/host/matrix_product.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include <tranship/kernels/host/inlined.hpp>

namespace tranship {
namespace {

// A part of b (depth_max by columns_max) is copied once. Parts of a (rows_max by depth_max) stay in the second cache
// while all columns of the part of b pass, and a strip of b, two vectors wide, stays in the first cache. The sizes
// follow Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008), for caches of 32 KiB and 512
// KiB.
constexpr long long depth_max = 256, rows_max = 96, columns_max = 768;
/// A multiple of the rows and the columns of all tiles.
constexpr long long strip_max = 48;
static_assert(rows_max % strip_max == 0 && columns_max % strip_max == 0);

template <class T, int Bytes>
struct VectorOfType {
  typedef T Type __attribute__((vector_size(Bytes)));
};

/// A tile of c: as many rows, two vectors wide, as the registers hold.
template <class T, int Bytes>
struct Tile {
  static constexpr int lanes = Bytes / int(sizeof(T));
  static constexpr int rows = Bytes == 32 ? 6 : 4;
  static constexpr int columns = 2 * lanes;
  static_assert(strip_max % rows == 0 && strip_max % columns == 0);
};

/// Multiplies a strip of a and a strip of b, both packed: for each k, the elements of all rows, or of all columns.
template <class T, int Bytes>
TRANSHIP_INLINE void multiply_strips(long long depth, const T* a, const T* b, T* product) {
  using V = typename VectorOfType<T, Bytes>::Type;
  using Shape = Tile<T, Bytes>;
  V sums[Shape::rows][2] = {};
  for (long long k = 0; k < depth; ++k) {
    V left, right;
    std::memcpy(&left, b, Bytes);
    std::memcpy(&right, b + Shape::lanes, Bytes);
#pragma GCC unroll 6
    for (int i = 0; i < Shape::rows; ++i) {
      sums[i][0] += a[i] * left;
      sums[i][1] += a[i] * right;
    }
    a += Shape::rows;
    b += Shape::columns;
  }
  std::memcpy(product, sums, sizeof sums);
}

/// Packs strips of `width` lines, one after the other, each with the elements of its lines side by side; fills the last
/// with zeros.
template <class T>
TRANSHIP_INLINE void pack(const T* from, long long lines, long long depth, long long line_stride,
                          long long depth_stride, int width, T* to) {
  for (long long line = 0; line < lines; line += width) {
    const long long count = std::min<long long>(width, lines - line);
    const T* const first = from + line * line_stride;
    for (long long k = 0; k < depth; ++k, to += width)
      for (int i = 0; i < width; ++i) to[i] = i < count ? first[i * line_stride + k * depth_stride] : T(0);
  }
}

template <class T, int Bytes>
TRANSHIP_INLINE void multiply_blocks(long long rows, long long columns, long long depth, const MatrixPlace<const T>& a,
                                     const MatrixPlace<const T>& b, T sign, const MatrixPlace<T>& c, T* a_room,
                                     T* b_room) {
  using Shape = Tile<T, Bytes>;
  alignas(64) T product[Shape::rows * Shape::columns];
  for (long long j = 0; j < columns; j += columns_max)
    for (long long k = 0; k < depth; k += depth_max) {
      const long long width = std::min(columns_max, columns - j), deep = std::min(depth_max, depth - k);
      pack(b.data + k * b.row_stride + j * b.column_stride, width, deep, b.column_stride, b.row_stride, Shape::columns,
           b_room);
      for (long long i = 0; i < rows; i += rows_max) {
        const long long high = std::min(rows_max, rows - i);
        pack(a.data + i * a.row_stride + k * a.column_stride, high, deep, a.row_stride, a.column_stride, Shape::rows,
             a_room);
        for (long long jj = 0; jj < width; jj += Shape::columns)
          for (long long ii = 0; ii < high; ii += Shape::rows) {
            multiply_strips<T, Bytes>(deep, a_room + ii * deep, b_room + jj * deep, product);
            T* const to = c.data + (i + ii) * c.row_stride + (j + jj) * c.column_stride;
            const long long n = std::min<long long>(Shape::rows, high - ii);
            const long long m = std::min<long long>(Shape::columns, width - jj);
            for (long long y = 0; y < n; ++y)
              for (long long x = 0; x < m; ++x)
                to[y * c.row_stride + x * c.column_stride] += sign * product[y * Shape::columns + x];
          }
      }
    }
}

template <class T>
using Multiply = void (*)(long long, long long, long long, const MatrixPlace<const T>&, const MatrixPlace<const T>&, T,
                          const MatrixPlace<T>&, T*, T*);

template <class T>
void multiply_16(long long rows, long long columns, long long depth, const MatrixPlace<const T>& a,
                 const MatrixPlace<const T>& b, T sign, const MatrixPlace<T>& c, T* a_room, T* b_room) {
  multiply_blocks<T, 16>(rows, columns, depth, a, b, sign, c, a_room, b_room);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void multiply_32(long long rows, long long columns, long long depth,
                                             const MatrixPlace<const T>& a, const MatrixPlace<const T>& b, T sign,
                                             const MatrixPlace<T>& c, T* a_room, T* b_room) {
  multiply_blocks<T, 32>(rows, columns, depth, a, b, sign, c, a_room, b_room);
}
#endif

template <class T>
Multiply<T> multiply_of_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &multiply_32<T>;
#endif
  return &multiply_16<T>;
}

constexpr long long round_up(long long count, long long to) {
  return (count + to - 1) / to * to;
}

}  // namespace

template <class T>
bool add_product(long long rows, long long columns, long long depth, const MatrixPlace<const T>& a,
                 const MatrixPlace<const T>& b, ProductSign sign, const MatrixPlace<T>& c) {
  static const Multiply<T> multiply = multiply_of_cpu<T>();
  const long long deep = std::min(depth, depth_max);
  const long long a_elements = round_up(std::min(rows, rows_max), strip_max) * deep;
  const long long b_elements = round_up(std::min(columns, columns_max), strip_max) * deep;
  const std::unique_ptr<T[]> room(new (std::nothrow) T[std::size_t(a_elements + b_elements)]);
  if (!room) return false;
  multiply(rows, columns, depth, a, b, static_cast<T>(static_cast<int>(sign)), c, room.get(), room.get() + a_elements);
  return true;
}

template bool add_product(long long, long long, long long, const MatrixPlace<const float>&,
                          const MatrixPlace<const float>&, ProductSign, const MatrixPlace<float>&);
template bool add_product(long long, long long, long long, const MatrixPlace<const double>&,
                          const MatrixPlace<const double>&, ProductSign, const MatrixPlace<double>&);

}  // namespace tranship
