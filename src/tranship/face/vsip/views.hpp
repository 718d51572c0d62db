// VSIPL views in C++: the elements of a view as an array of 1, 2 or 3 dimensions that works like std::mdspan and
// converts to it (where the standard library has it) and to tranship's StridedView. Indices are in the order of VSIPL:
// (i) for a vector, (row, column) for a matrix, (z, y, x) for a tensor. Nothing is copied: an Elements is valid until
// the block of the view is destroyed, released or rebound. Making one costs a call; element access is inline and
// compiles to address arithmetic.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <type_traits>

#include <tranship/array/mdspan.hpp>
#include <tranship/base/error.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/face/vsip/vsip.h>

namespace tranship::vsip {

/// Elements of type T at data + i * strides[0] + j * strides[1] + ...; strides count elements.
template <class T, int N>
class Elements {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  Elements(T* data, const std::array<std::ptrdiff_t, N>& strides, const std::array<std::size_t, N>& lengths)
      : data_(data), strides_(strides), lengths_(lengths) {}

  static constexpr std::size_t rank() noexcept { return N; }
  std::size_t extent(std::size_t d) const noexcept { return lengths_[d]; }
  std::ptrdiff_t stride(std::size_t d) const noexcept { return strides_[d]; }
  T* data_handle() const noexcept { return data_; }

  template <class... I>
  T& operator()(I... index) const noexcept {
    static_assert(sizeof...(I) == N, "one index for each dimension");
    const std::ptrdiff_t at[] = {static_cast<std::ptrdiff_t>(index)...};
    std::ptrdiff_t offset = 0;
    for (int d = 0; d < N; ++d) offset += at[d] * strides_[std::size_t(d)];
    return data_[offset];
  }

  /// Throws `invalid_use` when the layout of M cannot have these strides.
  template <MdspanLike M>
  operator M() const {
    return detail::make_mdspan<M>(data_, indices(lengths_), indices(strides_));
  }

  /// Never throws. T must be one of tranship's element types.
  operator StridedView() const {
    static_assert(has_element_type<value_type>, "an element type of tranship");
    StridedView view;
    view.data = const_cast<value_type*>(data_);
    view.type = element_type_of<value_type>;
    view.extents = indices(lengths_);
    view.strides = indices(strides_);
    return view;
  }

 private:
  template <class A>
  static Indices indices(const A& numbers) {
    Indices out;
    for (const auto number : numbers) out.push_back(Index(number));
    return out;
  }

  T* data_;
  std::array<std::ptrdiff_t, N> strides_;
  std::array<std::size_t, N> lengths_;
};

/// The two parts of complex elements, interleaved or split: element (i, ...) is real(i, ...) + i * imaginary(i, ...).
template <class T, int N>
struct Parts {
  Elements<T, N> real;
  Elements<T, N> imaginary;

  /// Returns true when the parts alternate in memory, as in std::complex.
  bool is_interleaved() const noexcept {
    if (imaginary.data_handle() != real.data_handle() + 1) return false;
    for (std::size_t d = 0; d < std::size_t(N); ++d)
      if (real.stride(d) % 2 != 0) return false;
    return true;
  }
  /// Returns the elements as std::complex. Throws `invalid_use` for split storage.
  Elements<std::complex<T>, N> interleaved() const {
    if (!is_interleaved())
      throw Error(ErrorCode::invalid_use, "the view has split storage: its parts do not alternate in memory");
    std::array<std::ptrdiff_t, N> strides;
    std::array<std::size_t, N> lengths;
    for (std::size_t d = 0; d < std::size_t(N); ++d) {
      strides[d] = real.stride(d) / 2;
      lengths[d] = real.extent(d);
    }
    return {reinterpret_cast<std::complex<T>*>(real.data_handle()), strides, lengths};
  }
};

namespace detail {

template <class T, int N>
Elements<T, N> elements_at(const tranship_vsip_place& place, void* data) {
  std::array<std::ptrdiff_t, N> strides;
  std::array<std::size_t, N> lengths;
  for (std::size_t d = 0; d < std::size_t(N); ++d) {
    strides[d] = place.strides[d];
    lengths[d] = place.lengths[d];
  }
  return {static_cast<T*>(data), strides, lengths};
}
template <class T, int N>
Elements<T, N> elements_at(const tranship_vsip_place& place) {
  return elements_at<T, N>(place, place.data);
}
template <class T, int N>
Parts<T, N> parts_at(const tranship_vsip_place& place) {
  return {elements_at<T, N>(place, place.data), elements_at<T, N>(place, place.imaginary)};
}

}  // namespace detail

// elements(view) takes a real view of any shape and type (float, double, int, short, ...); parts(view) takes a complex
// one. The view must be admitted and not NULL.
#define TRANSHIP_VSIP_REAL_ELEMENTS(T)                                              \
  inline Elements<vsip_scalar_##T, 1> elements(const vsip_vview_##T* view) {        \
    return detail::elements_at<vsip_scalar_##T, 1>(tranship_vsip_vplace_##T(view)); \
  }                                                                                 \
  inline Elements<vsip_scalar_##T, 2> elements(const vsip_mview_##T* view) {        \
    return detail::elements_at<vsip_scalar_##T, 2>(tranship_vsip_mplace_##T(view)); \
  }                                                                                 \
  inline Elements<vsip_scalar_##T, 3> elements(const vsip_tview_##T* view) {        \
    return detail::elements_at<vsip_scalar_##T, 3>(tranship_vsip_tplace_##T(view)); \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_REAL_ELEMENTS)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_VSIP_REAL_ELEMENTS)
#undef TRANSHIP_VSIP_REAL_ELEMENTS

#define TRANSHIP_VSIP_COMPLEX_PARTS(T)                                            \
  inline Parts<vsip_scalar_##T, 1> parts(const vsip_cvview_##T* view) {           \
    return detail::parts_at<vsip_scalar_##T, 1>(tranship_vsip_cvplace_##T(view)); \
  }                                                                               \
  inline Parts<vsip_scalar_##T, 2> parts(const vsip_cmview_##T* view) {           \
    return detail::parts_at<vsip_scalar_##T, 2>(tranship_vsip_cmplace_##T(view)); \
  }                                                                               \
  inline Parts<vsip_scalar_##T, 3> parts(const vsip_ctview_##T* view) {           \
    return detail::parts_at<vsip_scalar_##T, 3>(tranship_vsip_ctplace_##T(view)); \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_VSIP_COMPLEX_PARTS)
#undef TRANSHIP_VSIP_COMPLEX_PARTS

}  // namespace tranship::vsip
