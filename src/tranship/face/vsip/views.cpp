// Views of vectors, matrices and tensors. Each call is one expression of a template that serves all element types.
#include <tranship/face/vsip/blocks.hpp>

using namespace tranship::vsip;

namespace {

template <class V>
using Dimensions = std::array<Dimension, V::dims>;

template <class V, class B>
V* make_view(B* block, vsip_offset offset, const Dimensions<V>& dimensions) {
  V* const view = new (std::nothrow) V;
  if (!view) return nullptr;
  view->block = block;
  view->offset = offset;
  view->dimensions = dimensions;
  return noted(view);
}

template <class V, class B>
V* bind_view(const char* call, const B* block, vsip_offset offset, const Dimensions<V>& dimensions) {
  if (!usable_object(call, "block", block)) return nullptr;
  if constexpr (checking) {
    V view;
    view.block = const_cast<B*>(block);
    view.offset = offset;
    view.dimensions = dimensions;
    if (!inside_block(call, view)) return nullptr;
  }
  return make_view<V>(const_cast<B*>(block), offset, dimensions);
}

/// Creates a block with a dense view of it; `order` lists the dimensions from slowest to fastest.
template <class V>
V* create_view(const char* call, const std::array<vsip_length, V::dims>& lengths,
               const std::array<int, V::dims>& order) {
  if (!has_elements(call, lengths)) return nullptr;
  Dimensions<V> dimensions;
  vsip_length count = 1;
  for (int place = V::dims - 1; place >= 0; --place) {
    const int d = order[place];
    dimensions[d] = {vsip_stride(count), lengths[d]};
    if (__builtin_mul_overflow(count, lengths[d], &count) || count > vsip_length(PTRDIFF_MAX)) return nullptr;
  }
  auto* const block = create_block<typename V::Block>(call, count);
  if (!block) return nullptr;
  V* const view = make_view<V>(block, 0, dimensions);
  if (!view) destroy_block(call, block);
  return view;
}

template <class V>
V* clone_view(const char* call, const V* view) {
  return living_view(call, view) ? make_view<V>(view->block, view->offset, view->dimensions) : nullptr;
}

template <class V>
vsip_offset offset_of(const V& view, const std::array<vsip_index, V::dims>& index) {
  vsip_offset offset = view.offset;
  for (int d = 0; d < V::dims; ++d) offset += index[d] * vsip_offset(view.dimensions[d].stride);
  return offset;
}

template <class V>
V* sub_view(const char* call, const V* view, const std::array<vsip_index, V::dims>& first,
            const std::array<vsip_length, V::dims>& lengths) {
  if (!divisible_view(call, view)) return nullptr;
  Dimensions<V> dimensions = view->dimensions;
  for (int d = 0; d < V::dims; ++d) {
    if (!slice_inside(call, first[d], lengths[d], dimensions[d].length)) return nullptr;
    dimensions[d].length = lengths[d];
  }
  return make_view<V>(view->block, offset_of(*view, first), dimensions);
}

/// Returns the view whose dimension d is dimension order[d] of `view`.
template <class V>
V* permuted_view(const char* call, const V* view, const std::array<int, V::dims>& order) {
  if (!living_view(call, view)) return nullptr;
  Dimensions<V> dimensions;
  for (int d = 0; d < V::dims; ++d) dimensions[d] = view->dimensions[order[d]];
  return make_view<V>(view->block, view->offset, dimensions);
}

/// Returns a view of fewer dimensions: those that `kept` names, at `index` of the others.
template <class To, class V>
To* slice_view(const char* call, const V* view, const std::array<int, To::dims>& kept,
               const std::array<vsip_index, V::dims>& index) {
  if (!divisible_view(call, view)) return nullptr;
  Dimensions<To> dimensions;
  std::array<bool, V::dims> fixed;
  fixed.fill(true);
  for (int d = 0; d < To::dims; ++d) {
    dimensions[d] = view->dimensions[kept[d]];
    fixed[kept[d]] = false;
  }
  for (int d = 0; d < V::dims; ++d)
    if (fixed[d] && !index_below(call, index[d], view->dimensions[d].length)) return nullptr;
  return make_view<To>(view->block, offset_of(*view, index), dimensions);
}

template <class To, class V>
To* diagonal_view(const char* call, const V* view, vsip_stride diagonal) {
  if (!divisible_view(call, view)) return nullptr;
  const auto& [down, right] = view->dimensions;
  const std::array<vsip_index, 2> first{diagonal < 0 ? -vsip_index(diagonal) : 0,
                                        diagonal > 0 ? vsip_index(diagonal) : 0};
  if (!index_below(call, first[0], down.length) || !index_below(call, first[1], right.length)) return nullptr;
  const vsip_length length = std::min(down.length - first[0], right.length - first[1]);
  return make_view<To>(view->block, offset_of(*view, first), {{{down.stride + right.stride, length}}});
}

template <class To, class V>
To* part_view(const char* call, const V* view, int part) {
  if (!living_view(call, view)) return nullptr;
  return make_view<To>(&view->block->parts[part], view->offset, view->dimensions);
}

template <class V>
typename V::Block* destroy_view(const char* call, V* view) {
  if (!view || !usable_object(call, "view", view)) return nullptr;
  auto* const block = view->block;
  if (is_kept(*view)) return block;
  if constexpr (checking) note_destroyed(view);
  delete view;
  return block;
}

template <class V>
bool holds(const char* call, const V* view, const std::array<vsip_index, V::dims>& index) {
  if constexpr (checking) {
    if (!usable_view(call, view)) return false;
    for (int d = 0; d < V::dims; ++d)
      if (!index_below(call, index[d], view->dimensions[d].length)) return false;
  }
  return true;
}

template <class V>
typename V::Element get(const char* call, const V* view, const std::array<vsip_index, V::dims>& index) {
  if (!holds(call, view, index)) return {};
  const std::ptrdiff_t at = std::ptrdiff_t(offset_of(*view, index)) * view->block->step;
  if constexpr (V::Block::complex)
    return {view->block->re[at], view->block->im[at]};
  else
    return view->block->data[at];
}

template <class V>
void put(const char* call, const V* view, const std::array<vsip_index, V::dims>& index, typename V::Element value) {
  if (!holds(call, view, index)) return;
  const std::ptrdiff_t at = std::ptrdiff_t(offset_of(*view, index)) * view->block->step;
  if constexpr (V::Block::complex) {
    view->block->re[at] = value.r;
    view->block->im[at] = value.i;
  } else {
    view->block->data[at] = value;
  }
}

template <class V>
typename V::Block* block_of(const char* call, const V* view) {
  return usable_object(call, "view", view) ? view->block : nullptr;
}
template <class V>
vsip_offset get_offset(const char* call, const V* view) {
  return usable_object(call, "view", view) ? view->offset : 0;
}
template <class V>
Dimension dimension(const char* call, const V* view, int d) {
  return usable_object(call, "view", view) ? view->dimensions[d] : Dimension{};
}
template <class V>
V* put_offset(const char* call, V* view, vsip_offset offset) {
  if (!usable_object(call, "view", view)) return nullptr;
  view->offset = offset;
  return view;
}
template <class V>
V* put_stride(const char* call, V* view, int d, vsip_stride stride) {
  if (!usable_object(call, "view", view)) return nullptr;
  view->dimensions[d].stride = stride;
  return view;
}
template <class V>
V* put_length(const char* call, V* view, int d, vsip_length length) {
  if (!usable_object(call, "view", view)) return nullptr;
  view->dimensions[d].length = length;
  return view;
}
template <class V>
V* put_all(const char* call, V* view, vsip_offset offset, const Dimensions<V>& dimensions) {
  if (!usable_object(call, "block of the view", view->block)) return nullptr;
  V next = *view;
  next.offset = offset;
  next.dimensions = dimensions;
  if (!inside_block(call, next)) return nullptr;
  *view = next;
  return view;
}

template <class V>
tranship_vsip_place place_for_users(const char* call, const V* view) {
  tranship_vsip_place out = {};
  if (!usable_view(call, view)) return out;
  const auto place = place_of(*view);
  if constexpr (V::Block::complex) {
    out.data = place.re;
    out.imaginary = place.im;
  } else {
    out.data = place.data;
  }
  for (int d = 0; d < V::dims; ++d) {
    out.strides[d] = place.strides[d];
    out.lengths[d] = view->dimensions[d].length;
  }
  return out;
}

/// Returns the order of dimensions (z, y, x) after a transpose of a tensor.
std::array<int, 3> order_of(vsip_ttrans transpose) {
  switch (transpose) {
    case VSIP_TTRANS_YX:
      return {0, 2, 1};
    case VSIP_TTRANS_ZY:
      return {1, 0, 2};
    case VSIP_TTRANS_ZX:
      return {2, 1, 0};
    case VSIP_TTRANS_YXZY:
      return {2, 0, 1};
    case VSIP_TTRANS_YXZX:
      return {1, 2, 0};
    case VSIP_TTRANS_NOP:
      break;
  }
  return {0, 1, 2};
}

template <class M, class V>
M* matrix_of_tensor(const char* call, const V* view, vsip_tmslice slice, vsip_index index) {
  if (!valid(call, slice)) return nullptr;
  switch (slice) {
    case VSIP_TMZX:
      return slice_view<M>(call, view, {0, 2}, {0, index, 0});
    case VSIP_TMZY:
      return slice_view<M>(call, view, {0, 1}, {0, 0, index});
    case VSIP_TMYX:
      break;
  }
  return slice_view<M>(call, view, {1, 2}, {index, 0, 0});
}

template <class V, class T>
V* vector_of_tensor(const char* call, const T* view, vsip_tvslice slice, vsip_index first, vsip_index second) {
  if (!valid(call, slice)) return nullptr;
  switch (slice) {
    case VSIP_TVY:
      return slice_view<V>(call, view, {1}, {first, 0, second});
    case VSIP_TVZ:
      return slice_view<V>(call, view, {0}, {0, first, second});
    case VSIP_TVX:
      break;
  }
  return slice_view<V>(call, view, {2}, {first, second, 0});
}

}  // namespace

// The calls on views of all shapes. V is the view, A its attributes, P the prefix of the calls.
#define TRANSHIP_COMMON(P, V, A, B, T)                                           \
  V* P##cloneview_##T(const V* view) {                                           \
    return clone_view(#P "cloneview_" #T, view);                                 \
  }                                                                              \
  B* P##destroy_##T(V* view) {                                                   \
    return destroy_view(#P "destroy_" #T, view);                                 \
  }                                                                              \
  void P##alldestroy_##T(V* view) {                                              \
    destroy_block(#P "alldestroy_" #T, destroy_view(#P "alldestroy_" #T, view)); \
  }                                                                              \
  B* P##getblock_##T(const V* view) {                                            \
    return block_of(#P "getblock_" #T, view);                                    \
  }                                                                              \
  vsip_offset P##getoffset_##T(const V* view) {                                  \
    return get_offset(#P "getoffset_" #T, view);                                 \
  }                                                                              \
  V* P##putoffset_##T(V* view, vsip_offset offset) {                             \
    return put_offset(#P "putoffset_" #T, view, offset);                         \
  }
#define TRANSHIP_DIMENSION(P, V, T, NAME, D)                         \
  vsip_stride P##get##NAME##stride_##T(const V* view) {              \
    return dimension(#P "get" #NAME "stride_" #T, view, D).stride;   \
  }                                                                  \
  vsip_length P##get##NAME##length_##T(const V* view) {              \
    return dimension(#P "get" #NAME "length_" #T, view, D).length;   \
  }                                                                  \
  V* P##put##NAME##stride_##T(V* view, vsip_stride stride) {         \
    return put_stride(#P "put" #NAME "stride_" #T, view, D, stride); \
  }                                                                  \
  V* P##put##NAME##length_##T(V* view, vsip_length length) {         \
    return put_length(#P "put" #NAME "length_" #T, view, D, length); \
  }

#define TRANSHIP_DEFINE(C, T)                                                                                          \
  TRANSHIP_COMMON(vsip_##C##v, vsip_##C##vview_##T, vsip_##C##vattr_##T, vsip_##C##block_##T, T)                       \
  TRANSHIP_DIMENSION(vsip_##C##v, vsip_##C##vview_##T, T, , 0)                                                         \
  vsip_##C##vview_##T* vsip_##C##vcreate_##T(vsip_length length, vsip_memory_hint) {                                   \
    return create_view<vsip_##C##vview_##T>("vsip_" #C "vcreate_" #T, {length}, {0});                                  \
  }                                                                                                                    \
  vsip_##C##vview_##T* vsip_##C##vbind_##T(const vsip_##C##block_##T* block, vsip_offset offset, vsip_stride stride,   \
                                           vsip_length length) {                                                       \
    return bind_view<vsip_##C##vview_##T>("vsip_" #C "vbind_" #T, block, offset, {{{stride, length}}});                \
  }                                                                                                                    \
  vsip_##C##vview_##T* vsip_##C##vsubview_##T(const vsip_##C##vview_##T* view, vsip_index first, vsip_length length) { \
    return sub_view("vsip_" #C "vsubview_" #T, view, {first}, {length});                                               \
  }                                                                                                                    \
  vsip_##C##scalar_##T vsip_##C##vget_##T(const vsip_##C##vview_##T* view, vsip_index i) {                             \
    return get("vsip_" #C "vget_" #T, view, {i});                                                                      \
  }                                                                                                                    \
  void vsip_##C##vput_##T(const vsip_##C##vview_##T* view, vsip_index i, vsip_##C##scalar_##T value) {                 \
    put("vsip_" #C "vput_" #T, view, {i}, value);                                                                      \
  }                                                                                                                    \
  void vsip_##C##vgetattrib_##T(const vsip_##C##vview_##T* view, vsip_##C##vattr_##T* attributes) {                    \
    if (!has_attributes("vsip_" #C "vgetattrib_" #T, "view", view, attributes)) return;                                \
    const auto& [along] = view->dimensions;                                                                            \
    *attributes = {view->offset, along.stride, along.length, view->block};                                             \
  }                                                                                                                    \
  vsip_##C##vview_##T* vsip_##C##vputattrib_##T(vsip_##C##vview_##T* view, const vsip_##C##vattr_##T* attributes) {    \
    if (!has_attributes("vsip_" #C "vputattrib_" #T, "view", view, attributes)) return nullptr;                        \
    return put_all("vsip_" #C "vputattrib_" #T, view, attributes->offset,                                              \
                   {{{attributes->stride, attributes->length}}});                                                      \
  }                                                                                                                    \
  tranship_vsip_place tranship_vsip_##C##vplace_##T(const vsip_##C##vview_##T* view) {                                 \
    return place_for_users("tranship_vsip_" #C "vplace_" #T, view);                                                    \
  }                                                                                                                    \
  void tranship_vsip_##C##vkeep_##T(vsip_##C##vview_##T* view, tranship_vsip_keeper keeper) {                          \
    keep("tranship_vsip_" #C "vkeep_" #T, "view", view, keeper);                                                       \
  }
TRANSHIP_VSIP_VECTORS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

#define TRANSHIP_DEFINE(C, T)                                                                                         \
  TRANSHIP_COMMON(vsip_##C##m, vsip_##C##mview_##T, vsip_##C##mattr_##T, vsip_##C##block_##T, T)                      \
  TRANSHIP_DIMENSION(vsip_##C##m, vsip_##C##mview_##T, T, col, 0)                                                     \
  TRANSHIP_DIMENSION(vsip_##C##m, vsip_##C##mview_##T, T, row, 1)                                                     \
  vsip_##C##mview_##T* vsip_##C##mcreate_##T(vsip_length rows, vsip_length columns, vsip_major major,                 \
                                             vsip_memory_hint) {                                                      \
    if (!valid("vsip_" #C "mcreate_" #T, major)) return nullptr;                                                      \
    return create_view<vsip_##C##mview_##T>("vsip_" #C "mcreate_" #T, {rows, columns},                                \
                                            major == VSIP_ROW ? std::array<int, 2>{0, 1} : std::array<int, 2>{1, 0}); \
  }                                                                                                                   \
  vsip_##C##mview_##T* vsip_##C##mbind_##T(const vsip_##C##block_##T* block, vsip_offset offset,                      \
                                           vsip_stride col_stride, vsip_length col_length, vsip_stride row_stride,    \
                                           vsip_length row_length) {                                                  \
    return bind_view<vsip_##C##mview_##T>("vsip_" #C "mbind_" #T, block, offset,                                      \
                                          {{{col_stride, col_length}, {row_stride, row_length}}});                    \
  }                                                                                                                   \
  vsip_##C##mview_##T* vsip_##C##msubview_##T(const vsip_##C##mview_##T* view, vsip_index row, vsip_index column,     \
                                              vsip_length rows, vsip_length columns) {                                \
    return sub_view("vsip_" #C "msubview_" #T, view, {row, column}, {rows, columns});                                 \
  }                                                                                                                   \
  vsip_##C##mview_##T* vsip_##C##mtransview_##T(const vsip_##C##mview_##T* view) {                                    \
    return permuted_view("vsip_" #C "mtransview_" #T, view, {1, 0});                                                  \
  }                                                                                                                   \
  vsip_##C##vview_##T* vsip_##C##mrowview_##T(const vsip_##C##mview_##T* view, vsip_index row) {                      \
    return slice_view<vsip_##C##vview_##T>("vsip_" #C "mrowview_" #T, view, {1}, {row, 0});                           \
  }                                                                                                                   \
  vsip_##C##vview_##T* vsip_##C##mcolview_##T(const vsip_##C##mview_##T* view, vsip_index column) {                   \
    return slice_view<vsip_##C##vview_##T>("vsip_" #C "mcolview_" #T, view, {0}, {0, column});                        \
  }                                                                                                                   \
  vsip_##C##vview_##T* vsip_##C##mdiagview_##T(const vsip_##C##mview_##T* view, vsip_stride index) {                  \
    return diagonal_view<vsip_##C##vview_##T>("vsip_" #C "mdiagview_" #T, view, index);                               \
  }                                                                                                                   \
  vsip_##C##scalar_##T vsip_##C##mget_##T(const vsip_##C##mview_##T* view, vsip_index row, vsip_index column) {       \
    return get("vsip_" #C "mget_" #T, view, {row, column});                                                           \
  }                                                                                                                   \
  void vsip_##C##mput_##T(const vsip_##C##mview_##T* view, vsip_index row, vsip_index column,                         \
                          vsip_##C##scalar_##T value) {                                                               \
    put("vsip_" #C "mput_" #T, view, {row, column}, value);                                                           \
  }                                                                                                                   \
  void vsip_##C##mgetattrib_##T(const vsip_##C##mview_##T* view, vsip_##C##mattr_##T* attributes) {                   \
    if (!has_attributes("vsip_" #C "mgetattrib_" #T, "view", view, attributes)) return;                               \
    const auto& [down, right] = view->dimensions;                                                                     \
    *attributes = {view->offset, right.stride, right.length, down.stride, down.length, view->block};                  \
  }                                                                                                                   \
  vsip_##C##mview_##T* vsip_##C##mputattrib_##T(vsip_##C##mview_##T* view, const vsip_##C##mattr_##T* attributes) {   \
    if (!has_attributes("vsip_" #C "mputattrib_" #T, "view", view, attributes)) return nullptr;                       \
    return put_all(                                                                                                   \
        "vsip_" #C "mputattrib_" #T, view, attributes->offset,                                                        \
        {{{attributes->col_stride, attributes->col_length}, {attributes->row_stride, attributes->row_length}}});      \
  }                                                                                                                   \
  tranship_vsip_place tranship_vsip_##C##mplace_##T(const vsip_##C##mview_##T* view) {                                \
    return place_for_users("tranship_vsip_" #C "mplace_" #T, view);                                                   \
  }                                                                                                                   \
  void tranship_vsip_##C##mkeep_##T(vsip_##C##mview_##T* view, tranship_vsip_keeper keeper) {                         \
    keep("tranship_vsip_" #C "mkeep_" #T, "view", view, keeper);                                                      \
  }
TRANSHIP_VSIP_MATRICES(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

#define TRANSHIP_DEFINE(C, T)                                                                                          \
  TRANSHIP_COMMON(vsip_##C##t, vsip_##C##tview_##T, vsip_##C##tattr_##T, vsip_##C##block_##T, T)                       \
  TRANSHIP_DIMENSION(vsip_##C##t, vsip_##C##tview_##T, T, z, 0)                                                        \
  TRANSHIP_DIMENSION(vsip_##C##t, vsip_##C##tview_##T, T, y, 1)                                                        \
  TRANSHIP_DIMENSION(vsip_##C##t, vsip_##C##tview_##T, T, x, 2)                                                        \
  vsip_##C##tview_##T* vsip_##C##tcreate_##T(vsip_length z, vsip_length y, vsip_length x, vsip_tmajor major,           \
                                             vsip_memory_hint) {                                                       \
    if (!valid("vsip_" #C "tcreate_" #T, major)) return nullptr;                                                       \
    return create_view<vsip_##C##tview_##T>(                                                                           \
        "vsip_" #C "tcreate_" #T, {z, y, x},                                                                           \
        major == VSIP_TRAILING ? std::array<int, 3>{0, 1, 2} : std::array<int, 3>{2, 1, 0});                           \
  }                                                                                                                    \
  vsip_##C##tview_##T* vsip_##C##tbind_##T(const vsip_##C##block_##T* block, vsip_offset offset, vsip_stride z_stride, \
                                           vsip_length z_length, vsip_stride y_stride, vsip_length y_length,           \
                                           vsip_stride x_stride, vsip_length x_length) {                               \
    return bind_view<vsip_##C##tview_##T>("vsip_" #C "tbind_" #T, block, offset,                                       \
                                          {{{z_stride, z_length}, {y_stride, y_length}, {x_stride, x_length}}});       \
  }                                                                                                                    \
  vsip_##C##tview_##T* vsip_##C##tsubview_##T(const vsip_##C##tview_##T* view, vsip_index z, vsip_index y,             \
                                              vsip_index x, vsip_length z_length, vsip_length y_length,                \
                                              vsip_length x_length) {                                                  \
    return sub_view("vsip_" #C "tsubview_" #T, view, {z, y, x}, {z_length, y_length, x_length});                       \
  }                                                                                                                    \
  vsip_##C##tview_##T* vsip_##C##ttransview_##T(const vsip_##C##tview_##T* view, vsip_ttrans transpose) {              \
    if (!valid("vsip_" #C "ttransview_" #T, transpose)) return nullptr;                                                \
    return permuted_view("vsip_" #C "ttransview_" #T, view, order_of(transpose));                                      \
  }                                                                                                                    \
  vsip_##C##mview_##T* vsip_##C##tmatrixview_##T(const vsip_##C##tview_##T* view, vsip_tmslice slice,                  \
                                                 vsip_index index) {                                                   \
    return matrix_of_tensor<vsip_##C##mview_##T>("vsip_" #C "tmatrixview_" #T, view, slice, index);                    \
  }                                                                                                                    \
  vsip_##C##vview_##T* vsip_##C##tvectview_##T(const vsip_##C##tview_##T* view, vsip_tvslice slice, vsip_index first,  \
                                               vsip_index second) {                                                    \
    return vector_of_tensor<vsip_##C##vview_##T>("vsip_" #C "tvectview_" #T, view, slice, first, second);              \
  }                                                                                                                    \
  vsip_##C##scalar_##T vsip_##C##tget_##T(const vsip_##C##tview_##T* view, vsip_index z, vsip_index y, vsip_index x) { \
    return get("vsip_" #C "tget_" #T, view, {z, y, x});                                                                \
  }                                                                                                                    \
  void vsip_##C##tput_##T(const vsip_##C##tview_##T* view, vsip_index z, vsip_index y, vsip_index x,                   \
                          vsip_##C##scalar_##T value) {                                                                \
    put("vsip_" #C "tput_" #T, view, {z, y, x}, value);                                                                \
  }                                                                                                                    \
  void vsip_##C##tgetattrib_##T(const vsip_##C##tview_##T* view, vsip_##C##tattr_##T* attributes) {                    \
    if (!has_attributes("vsip_" #C "tgetattrib_" #T, "view", view, attributes)) return;                                \
    const auto& [z, y, x] = view->dimensions;                                                                          \
    *attributes = {view->offset, z.length, z.stride, y.length, y.stride, x.length, x.stride, view->block};             \
  }                                                                                                                    \
  vsip_##C##tview_##T* vsip_##C##tputattrib_##T(vsip_##C##tview_##T* view, const vsip_##C##tattr_##T* attributes) {    \
    if (!has_attributes("vsip_" #C "tputattrib_" #T, "view", view, attributes)) return nullptr;                        \
    return put_all("vsip_" #C "tputattrib_" #T, view, attributes->offset,                                              \
                   {{{attributes->z_stride, attributes->z_length},                                                     \
                     {attributes->y_stride, attributes->y_length},                                                     \
                     {attributes->x_stride, attributes->x_length}}});                                                  \
  }                                                                                                                    \
  tranship_vsip_place tranship_vsip_##C##tplace_##T(const vsip_##C##tview_##T* view) {                                 \
    return place_for_users("tranship_vsip_" #C "tplace_" #T, view);                                                    \
  }                                                                                                                    \
  void tranship_vsip_##C##tkeep_##T(vsip_##C##tview_##T* view, tranship_vsip_keeper keeper) {                          \
    keep("tranship_vsip_" #C "tkeep_" #T, "view", view, keeper);                                                       \
  }
TRANSHIP_VSIP_TENSORS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

#define TRANSHIP_PARTS(S, T)                                                    \
  vsip_##S##view_##T* vsip_##S##realview_##T(const vsip_c##S##view_##T* view) { \
    return part_view<vsip_##S##view_##T>("vsip_" #S "realview_" #T, view, 0);   \
  }                                                                             \
  vsip_##S##view_##T* vsip_##S##imagview_##T(const vsip_c##S##view_##T* view) { \
    return part_view<vsip_##S##view_##T>("vsip_" #S "imagview_" #T, view, 1);   \
  }
#define TRANSHIP_DEFINE(T) TRANSHIP_PARTS(v, T) TRANSHIP_PARTS(m, T) TRANSHIP_PARTS(t, T)
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_COMMON
#undef TRANSHIP_DIMENSION
#undef TRANSHIP_PARTS
#undef TRANSHIP_DEFINE
