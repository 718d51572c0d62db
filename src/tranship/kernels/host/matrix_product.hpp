// Private: products of matrices of real numbers, in blocks that stay in the caches. Complex matrices are products of
// their real and imaginary parts.
#pragma once

namespace tranship {

/// Element (i, j) lies at data[i * row_stride + j * column_stride].
template <class T>
struct MatrixPlace {
  T* data = nullptr;
  long long row_stride = 0;
  long long column_stride = 0;
};

/// What is added: +1 or -1 times the product.
enum class ProductSign : int { minus = -1, plus = 1 };

/// c += sign * a b, where a has `rows` by `depth` elements, b `depth` by `columns`, and c, which overlaps neither of
/// them, `rows` by `columns`. Sums are rounded in T, in an order that depends on the sizes and on the processor. Takes
/// up to 2 MiB for copies of a and b; false, and nothing is done, where they cannot be had. For float and double.
template <class T>
bool add_product(long long rows, long long columns, long long depth, const MatrixPlace<const T>& a,
                 const MatrixPlace<const T>& b, ProductSign sign, const MatrixPlace<T>& c);

}  // namespace tranship
