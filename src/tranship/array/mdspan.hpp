// Detail: Conversions between std::mdspan, or views with the same members, and a pointer with extents and strides.
#pragma once

#include <array>
#include <concepts>
#include <version>

#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

#include <tranship/base/strided_view.hpp>

namespace tranship {

/// A view like std::mdspan that can be asked for its strides.
template <class M>
concept MdspanLike = requires(const M& view) {
  { M::rank() } -> std::convertible_to<std::size_t>;
  { view.extent(std::size_t(0)) } -> std::convertible_to<Index>;
  { view.stride(std::size_t(0)) } -> std::convertible_to<Index>;
  view.data_handle();
};

namespace detail {

/// Throws `invalid_use` unless `rank`, the dimensions of an mdspan-like view, equals `dims`, those of the local array.
void check_mdspan_rank(std::size_t rank, int dims);
[[noreturn]] void refuse_mdspan_stride(std::size_t d, Index theirs, Index mine);

template <class M>
Indices extents_of_mdspan(const M& view) {
  Indices out;
  for (std::size_t d = 0; d < std::size_t(M::rank()); ++d) out.push_back(Index(view.extent(d)));
  return out;
}
template <class M>
Indices strides_of_mdspan(const M& view) {
  Indices out;
  for (std::size_t d = 0; d < std::size_t(M::rank()); ++d) out.push_back(Index(view.stride(d)));
  return out;
}

/// Returns a view `M` of the elements at `data`; strides count elements. Throws `invalid_use` when the mapping of M
/// fixes the strides and they differ from `strides`.
template <class M, class T>
M make_mdspan(T* data, const Indices& extents, const Indices& strides) {
  constexpr std::size_t rank = M::rank();
  using Extents = typename M::extents_type;
  using Mapping = typename M::mapping_type;
  using Number = typename Extents::index_type;
  check_mdspan_rank(rank, extents.size());
  std::array<Number, rank> lengths{}, steps{};
  for (std::size_t d = 0; d < rank; ++d) {
    lengths[d] = Number(extents[int(d)]);
    steps[d] = Number(strides[int(d)]);
  }
  if constexpr (std::constructible_from<Mapping, Extents, std::array<Number, rank>>) {
    return M(data, Mapping(Extents(lengths), steps));
  } else {
    M out(data, Mapping(Extents(lengths)));
    for (std::size_t d = 0; d < rank; ++d)
      if (lengths[d] > 1 && Index(out.stride(d)) != strides[int(d)])
        refuse_mdspan_stride(d, Index(out.stride(d)), strides[int(d)]);
    return out;
  }
}

}  // namespace detail
}  // namespace tranship
