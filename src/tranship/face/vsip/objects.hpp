// Private: The blocks and views behind vsip.h. A view is a block, an offset and a (stride, length) pair per dimension;
// a block is one array of elements, or two arrays of parts, `step` scalars apart. Invariant: a block that may be used
// (`usable`) has memory for `length` elements. Read next: checks.hpp, loops.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <tranship/face/vsip/vsip.h>

namespace tranship::vsip {

enum class BlockKind : unsigned char { library, user, derived };

template <class E, class U>
struct Block {
  using Element = E;
  using User = U;
  static constexpr bool complex = false;
  E* data = nullptr;
  vsip_length length = 0;
  /// Scalars from one element to the next: 2 for the parts of interleaved complex elements.
  std::ptrdiff_t step = 1;
  BlockKind kind = BlockKind::library;
  bool admitted = true;
  void* owner = nullptr;  ///< for a derived block, its complex block
  tranship_vsip_keeper keeper = nullptr;
};

template <class R, class C, class RealBlock>
struct ComplexBlock {
  using Element = C;
  using Part = R;
  static constexpr bool complex = true;
  R* re = nullptr;
  R* im = nullptr;
  vsip_length length = 0;
  std::ptrdiff_t step = 2;
  BlockKind kind = BlockKind::library;
  bool admitted = true;
  RealBlock parts[2];  ///< the derived blocks of the real and of the imaginary parts
  tranship_vsip_keeper keeper = nullptr;
};

struct Dimension {
  vsip_stride stride = 0;
  vsip_length length = 0;
};

/// Dimensions are in the order of indices: (i) for a vector, (row, column) for a matrix, (z, y, x) for a tensor. The
/// stride of dimension 0 of a matrix is the column stride.
template <class B, int N>
struct View {
  using Block = B;
  using Element = typename B::Element;
  static constexpr int dims = N;
  Block* block = nullptr;
  vsip_offset offset = 0;
  std::array<Dimension, N> dimensions{};
  tranship_vsip_keeper keeper = nullptr;
};

/// Returns true if another library has lent the object and keeps it.
template <class O>
bool is_kept(const O& object) {
  return object.keeper && object.keeper(&object);
}

/// Scalars at `data + i * strides[0] + ...`.
template <class T, int N>
struct Place {
  using Scalar = T;
  static constexpr bool complex = false;
  T* data;
  std::array<std::ptrdiff_t, N> strides;
};
/// Both parts of complex elements, addressed like a Place.
template <class T, class C, int N>
struct ComplexPlace {
  using Scalar = C;
  static constexpr bool complex = true;
  T* re;
  T* im;
  std::array<std::ptrdiff_t, N> strides;
};

template <class V>
auto place_of(const V& view) {
  constexpr int n = V::dims;
  const auto& block = *view.block;
  std::array<std::ptrdiff_t, n> strides{};
  // A dimension of one element may have any stride, so the product may overflow.
  for (int d = 0; d < n; ++d)
    strides[d] = std::ptrdiff_t(std::size_t(view.dimensions[d].stride) * std::size_t(block.step));
  const std::ptrdiff_t first = std::ptrdiff_t(view.offset) * block.step;
  if constexpr (V::Block::complex) {
    using R = typename V::Block::Part;
    return ComplexPlace<R, typename V::Element, n>{block.re + first, block.im + first, strides};
  } else {
    return Place<typename V::Element, n>{block.data + first, strides};
  }
}

}  // namespace tranship::vsip

#define TRANSHIP_DEFINE(T, U) \
  struct vsip_block_##T : tranship::vsip::Block<vsip_scalar_##T, vsip_scalar_##U> {};
TRANSHIP_VSIP_BLOCKS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#define TRANSHIP_DEFINE(T) \
  struct vsip_cblock_##T : tranship::vsip::ComplexBlock<vsip_scalar_##T, vsip_cscalar_##T, vsip_block_##T> {};
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#define TRANSHIP_DEFINE(C, T) \
  struct vsip_##C##vview_##T : tranship::vsip::View<vsip_##C##block_##T, 1> {};
TRANSHIP_VSIP_VECTORS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#define TRANSHIP_DEFINE(C, T) \
  struct vsip_##C##mview_##T : tranship::vsip::View<vsip_##C##block_##T, 2> {};
TRANSHIP_VSIP_MATRICES(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#define TRANSHIP_DEFINE(C, T) \
  struct vsip_##C##tview_##T : tranship::vsip::View<vsip_##C##block_##T, 3> {};
TRANSHIP_VSIP_TENSORS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
