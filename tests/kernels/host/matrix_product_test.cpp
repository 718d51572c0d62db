// Products in blocks against a loop: any strides, sizes around those of blocks and tiles, small whole numbers, which
// have no rounding.
#include <cstddef>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/kernels/host/matrix_product.hpp>

namespace tranship::test {
namespace {

/// A matrix somewhere in memory that holds other elements, too.
template <class T>
struct Matrix {
  std::vector<T> memory;
  std::ptrdiff_t first = 0, row_stride = 0, column_stride = 0;

  Matrix(SplitMix64& random, long long rows, long long columns) {
    const auto step = std::ptrdiff_t(1 + random.next() % 2), gap = std::ptrdiff_t(random.next() % 3);
    const bool by_rows = random.next() % 2 == 0;
    const std::ptrdiff_t inner = by_rows ? columns : rows;
    row_stride = by_rows ? inner * step + gap : step;
    column_stride = by_rows ? step : inner * step + gap;
    memory.resize(std::size_t((rows - 1) * row_stride + (columns - 1) * column_stride + 1));
    for (T& x : memory) x = T(int(random.next() % 9) - 4);
    if (random.next() % 2) first += (rows - 1) * row_stride, row_stride = -row_stride;
    if (random.next() % 2) first += (columns - 1) * column_stride, column_stride = -column_stride;
  }
  T& at(long long i, long long j) { return memory[std::size_t(first + i * row_stride + j * column_stride)]; }
  template <class U>
  MatrixPlace<U> place() {
    return {memory.data() + first, row_stride, column_stride};
  }
};

template <class T>
void expect_product(long long rows, long long columns, long long depth, std::uint64_t seed) {
  SplitMix64 random(seed);
  Matrix<T> a(random, rows, depth), b(random, depth, columns), c(random, rows, columns);
  const ProductSign sign = random.next() % 2 ? ProductSign::plus : ProductSign::minus;
  Matrix<T> expected = c;
  for (long long i = 0; i < rows; ++i)
    for (long long j = 0; j < columns; ++j)
      for (long long k = 0; k < depth; ++k) expected.at(i, j) += T(int(sign)) * a.at(i, k) * b.at(k, j);
  ASSERT_TRUE(add_product<T>(rows, columns, depth, a.template place<const T>(), b.template place<const T>(), sign,
                             c.template place<T>()));
  // What lies between its elements is untouched.
  ASSERT_EQ(c.memory, expected.memory) << fmt::format("{} x {} x {}, seed {}", rows, columns, depth, seed);
}

TEST(MatrixProduct, agrees_with_the_loop) {
  std::uint64_t seed = 0;
  for (long long rows : {1, 2, 5, 6, 7, 12, 13})
    for (long long columns : {1, 3, 4, 8, 15, 16, 17})
      for (long long depth : {1, 2, 9}) {
        expect_product<float>(rows, columns, depth, ++seed);
        expect_product<double>(rows, columns, depth, ++seed);
      }
}

TEST(MatrixProduct, of_several_blocks_agrees_with_the_loop) {
  expect_product<float>(97, 33, 257, 1);
  expect_product<double>(200, 50, 300, 2);
  expect_product<double>(3, 800, 20, 3);
  expect_product<float>(96, 768, 16, 4);
}

TEST(MatrixProduct, of_nothing_is_nothing) {
  double c = 5;
  const double a = 2;
  EXPECT_TRUE(add_product<double>(1, 1, 0, {&a, 1, 1}, {&a, 1, 1}, ProductSign::plus, {&c, 1, 1}));
  EXPECT_TRUE(add_product<double>(0, 1, 1, {&a, 1, 1}, {&a, 1, 1}, ProductSign::plus, {&c, 1, 1}));
  EXPECT_TRUE(add_product<double>(1, 0, 1, {&a, 1, 1}, {&a, 1, 1}, ProductSign::plus, {&c, 1, 1}));
  EXPECT_EQ(c, 5);
}

}  // namespace
}  // namespace tranship::test
