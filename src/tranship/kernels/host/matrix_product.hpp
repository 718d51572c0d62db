// Private: products of real matrices, in blocks that stay in the caches. A product of complex matrices consists of
// products of their real and imaginary parts.
#pragma once

namespace tranship {

/// Element (i, j) lies at data[i * row_stride + j * column_stride].
template <class T>
struct MatrixPlace {
  T* data = nullptr;
  long long row_stride = 0;
  long long column_stride = 0;
};

/// The factor of the product that is added: +1 or -1.
enum class ProductSign : int { minus = -1, plus = 1 };

/// Computes c += sign * a b, where a has `rows` by `depth` elements, b `depth` by `columns`, and c `rows` by `columns`;
/// c must not overlap a or b. Sums are rounded in T, in an order that depends on the sizes and the processor. Allocates
/// up to 2 MiB for copies of a and b; if it cannot, returns false and changes nothing. For float and double.
template <class T>
bool add_product(long long rows, long long columns, long long depth, const MatrixPlace<const T>& a,
                 const MatrixPlace<const T>& b, ProductSign sign, const MatrixPlace<T>& c);

}  // namespace tranship
