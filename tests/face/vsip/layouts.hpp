// Views for tests: every element type in every layout, with guards around and between the elements.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <vsip.h>

namespace vsip_test {

/// The calls of one element type. Value is what tests compute with.
template <class View>
struct Calls;

struct RealTraits {
  static constexpr bool complex = false;
  using Value = double;
};
struct ComplexTraits {
  static constexpr bool complex = true;
  using Value = std::complex<double>;
};

#define VSIP_TEST_REAL(T)                                                                                          \
  template <>                                                                                                      \
  struct Calls<vsip_vview_##T> : RealTraits {                                                                      \
    using Scalar = vsip_scalar_##T;                                                                                \
    static vsip_vview_##T* bind(Scalar* data, Scalar*, vsip_length size, vsip_offset offset, const vsip_stride* s, \
                                const vsip_length* n) {                                                            \
      auto* block = vsip_blockbind_##T(data, size, VSIP_MEM_NONE);                                                 \
      vsip_blockadmit_##T(block, VSIP_TRUE);                                                                       \
      return vsip_vbind_##T(block, offset, s[1], n[1]);                                                            \
    }                                                                                                              \
    static void destroy(vsip_vview_##T* v) { vsip_valldestroy_##T(v); }                                            \
  };                                                                                                               \
  template <>                                                                                                      \
  struct Calls<vsip_mview_##T> : RealTraits {                                                                      \
    using Scalar = vsip_scalar_##T;                                                                                \
    static vsip_mview_##T* bind(Scalar* data, Scalar*, vsip_length size, vsip_offset offset, const vsip_stride* s, \
                                const vsip_length* n) {                                                            \
      auto* block = vsip_blockbind_##T(data, size, VSIP_MEM_NONE);                                                 \
      vsip_blockadmit_##T(block, VSIP_TRUE);                                                                       \
      return vsip_mbind_##T(block, offset, s[0], n[0], s[1], n[1]);                                                \
    }                                                                                                              \
    static void destroy(vsip_mview_##T* v) { vsip_malldestroy_##T(v); }                                            \
  };
TRANSHIP_VSIP_FLOATS(VSIP_TEST_REAL)
TRANSHIP_VSIP_INTEGERS(VSIP_TEST_REAL)
VSIP_TEST_REAL(bl)
#undef VSIP_TEST_REAL

#define VSIP_TEST_COMPLEX(T)                                                                                         \
  template <>                                                                                                        \
  struct Calls<vsip_cvview_##T> : ComplexTraits {                                                                    \
    using Scalar = vsip_scalar_##T;                                                                                  \
    static vsip_cvview_##T* bind(Scalar* re, Scalar* im, vsip_length size, vsip_offset offset, const vsip_stride* s, \
                                 const vsip_length* n) {                                                             \
      auto* block = vsip_cblockbind_##T(re, im, size, VSIP_MEM_NONE);                                                \
      vsip_cblockadmit_##T(block, VSIP_TRUE);                                                                        \
      return vsip_cvbind_##T(block, offset, s[1], n[1]);                                                             \
    }                                                                                                                \
    static void destroy(vsip_cvview_##T* v) { vsip_cvalldestroy_##T(v); }                                            \
  };                                                                                                                 \
  template <>                                                                                                        \
  struct Calls<vsip_cmview_##T> : ComplexTraits {                                                                    \
    using Scalar = vsip_scalar_##T;                                                                                  \
    static vsip_cmview_##T* bind(Scalar* re, Scalar* im, vsip_length size, vsip_offset offset, const vsip_stride* s, \
                                 const vsip_length* n) {                                                             \
      auto* block = vsip_cblockbind_##T(re, im, size, VSIP_MEM_NONE);                                                \
      vsip_cblockadmit_##T(block, VSIP_TRUE);                                                                        \
      return vsip_cmbind_##T(block, offset, s[0], n[0], s[1], n[1]);                                                 \
    }                                                                                                                \
    static void destroy(vsip_cmview_##T* v) { vsip_cmalldestroy_##T(v); }                                            \
  };
TRANSHIP_VSIP_FLOATS(VSIP_TEST_COMPLEX)
#undef VSIP_TEST_COMPLEX

/// How a matrix of rows x columns lies (a vector is one row): the distance of neighbours along a row, and whether
/// rows are longer than their elements, backwards, or columns are the contiguous ones.
struct Layout {
  const char* name;
  vsip_stride step;
  bool columns_first;
  bool split;
  vsip_length padding;
};
inline constexpr Layout layouts[] = {
    {"dense", 1, false, false, 0},
    {"split", 1, false, true, 0},
    {"padded", 1, false, false, 3},
    {"strided", 3, false, false, 0},
    {"backwards", -1, false, false, 1},
    {"columns first", 1, true, false, 0},
    {"split, strided back", -2, true, true, 1},
};
inline constexpr int layout_count = int(std::size(layouts));

/// An array of `rows` x `columns` elements in a layout, in memory whose other elements are guards.
template <class View>
class Array {
 public:
  using Call = Calls<View>;
  using Scalar = typename Call::Scalar;
  using Value = typename Call::Value;

  Array(const Layout& layout, vsip_length rows, vsip_length columns) : layout_(layout), rows_(rows), columns_(columns) {
    const vsip_length n[2] = {rows, columns};
    const int fast = layout.columns_first ? 0 : 1;
    vsip_stride s[2];
    s[fast] = layout.step;
    s[1 - fast] = vsip_stride(n[fast]) * std::abs(layout.step) + vsip_stride(layout.padding);
    size_ = vsip_length(s[1 - fast]) * n[1 - fast] + 10;
    vsip_offset offset = 5;
    if (layout.step < 0) offset += (n[fast] - 1) * vsip_length(-layout.step);
    offset_ = offset;
    strides_[0] = s[0];
    strides_[1] = s[1];
    const bool split = Call::complex && layout.split;
    data_.assign(size_ * (Call::complex && !split ? 2 : 1), guard());
    if (split) imaginary_.assign(size_, guard());
    view_ = Call::bind(data_.data(), split ? imaginary_.data() : nullptr, size_, offset, s, n);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { Call::destroy(view_); }

  View* view() const { return view_; }
  Value get(vsip_length i, vsip_length j) const {
    const std::size_t at = place(i, j);
    if constexpr (Call::complex)
      return layout_.split ? Value(double(data_[at]), double(imaginary_[at]))
                           : Value(double(data_[2 * at]), double(data_[2 * at + 1]));
    else
      return double(data_[at]);
  }
  void set(vsip_length i, vsip_length j, Value value) {
    const std::size_t at = place(i, j);
    if constexpr (Call::complex) {
      (layout_.split ? data_[at] : data_[2 * at]) = Scalar(value.real());
      (layout_.split ? imaginary_[at] : data_[2 * at + 1]) = Scalar(value.imag());
    } else {
      data_[at] = Scalar(value);
    }
  }
  /// How many elements outside of the view have changed.
  int damaged_guards() const {
    std::vector<bool> inside(size_);
    for (vsip_length i = 0; i < rows_; ++i)
      for (vsip_length j = 0; j < columns_; ++j) inside[place(i, j)] = true;
    int damaged = 0;
    const bool interleaved = Call::complex && imaginary_.empty();
    for (std::size_t k = 0; k < data_.size(); ++k) damaged += !inside[interleaved ? k / 2 : k] && data_[k] != guard();
    for (std::size_t k = 0; k < imaginary_.size(); ++k) damaged += !inside[k] && imaginary_[k] != guard();
    return damaged;
  }

 private:
  static Scalar guard() { return Scalar(77); }
  std::size_t place(vsip_length i, vsip_length j) const {
    return std::size_t(vsip_stride(offset_) + vsip_stride(i) * strides_[0] + vsip_stride(j) * strides_[1]);
  }

  const Layout& layout_;
  vsip_length rows_, columns_, size_ = 0, offset_ = 0;
  vsip_stride strides_[2];
  std::vector<Scalar> data_, imaginary_;
  View* view_ = nullptr;
};

/// A value for element k of operand `which`: of either sign for signed types, never zero.
template <class View>
typename Calls<View>::Value value(int which, vsip_length k) {
  using Call = Calls<View>;
  const int number = int((k * 37 + vsip_length(which) * 11 + 5) % 101);
  if constexpr (Call::complex)
    return {(number - 50.5) / 60, double(int(k * 13 + vsip_length(which)) % 23 - 11.5) / 15};
  else if constexpr (std::is_floating_point_v<typename Call::Scalar>)
    return (number - 50.5) / 60;
  else if constexpr (std::is_signed_v<typename Call::Scalar>)
    return number % 10 - 4;
  else
    return number % 10;
}

template <class V>
bool near(V a, V b, double tolerance) {
  if constexpr (std::is_same_v<V, double>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

}  // namespace vsip_test
