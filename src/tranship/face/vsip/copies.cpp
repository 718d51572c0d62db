// Copies between views, and between views and arrays of the caller.
#include <tranship/face/vsip/moves.hpp>

using namespace tranship::vsip;

namespace {

template <class To, bool to_boolean, class From>
To converted(From a) {
  if constexpr (to_boolean)
    return To(a != From(0));
  else
    return To(a);
}
template <class To, class From>
Cx<To> complex_converted(Cx<From> a) {
  return {To(a.r), To(a.i)};
}

template <bool to_boolean, class V, class W>
void copy(const char* call, const V* a, const W* r) {
  if constexpr (std::is_same_v<V, W> && !to_boolean) {
    if (conform(call, r, a) && apart(call, Sharing::same_scalars, *r, *a)) move_elements(*a, *r);
  } else if constexpr (W::Block::complex) {
    map(
        call, [](auto x) { return complex_converted<typename W::Block::Part>(x); }, r, a);
  } else {
    map(
        call, [](auto x) { return converted<typename W::Element, to_boolean>(x); }, r, a);
  }
}

template <class T>
inline constexpr bool is_boolean = std::is_same_v<T, vsip_block_bl>;

/// Returns a dense view of an array of the caller, with the lengths of `like`.
template <class V>
V dense_like(const V& like, vsip_major major, typename V::Block& block) {
  V out = like;
  out.block = &block;
  out.offset = 0;
  if constexpr (V::dims == 1) {
    out.dimensions[0].stride = 1;
  } else {
    const int fast = major == VSIP_ROW ? 1 : 0;
    out.dimensions[fast].stride = 1;
    out.dimensions[1 - fast].stride = vsip_stride(like.dimensions[fast].length);
  }
  return out;
}

template <class V>
bool user_array(const char* call, const V* view, const void* array) {
  if (!usable_view(call, view)) return false;
  if (checking && !array) {
    report(call, "the array for %zu elements is NULL", view->dimensions[0].length);
    return false;
  }
  return true;
}

template <class V, class T>
void copy_user(const char* call, const V* view, vsip_major major, T* array, bool out) {
  if (!valid(call, major) || !user_array(call, view, array)) return;
  typename V::Block block;
  block.data = array;
  const V dense = dense_like(*view, major, block);
  out ? move_elements(*view, dense) : move_elements(dense, *view);
}
template <class V, class T>
void copy_user(const char* call, const V* view, vsip_major major, T* real, T* imaginary, bool out) {
  if (!valid(call, major) || !user_array(call, view, real)) return;
  typename V::Block block;
  block.re = real;
  block.im = imaginary ? imaginary : real + 1;
  block.step = imaginary ? 1 : 2;
  const V dense = dense_like(*view, major, block);
  out ? move_elements(*view, dense) : move_elements(dense, *view);
}

}  // namespace

#define TRANSHIP_DEFINE(A, B)                                                   \
  void vsip_vcopy_##A##_##B(const vsip_vview_##A* a, const vsip_vview_##B* r) { \
    copy<is_boolean<vsip_block_##B>>("vsip_vcopy_" #A "_" #B, a, r);            \
  }
TRANSHIP_VSIP_VECTOR_PAIRS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#define TRANSHIP_DEFINE(A, B)                                                   \
  void vsip_mcopy_##A##_##B(const vsip_mview_##A* a, const vsip_mview_##B* r) { \
    copy<is_boolean<vsip_block_##B>>("vsip_mcopy_" #A "_" #B, a, r);            \
  }
TRANSHIP_VSIP_NUMBER_PAIRS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#define TRANSHIP_DEFINE(A, B)                                                      \
  void vsip_cvcopy_##A##_##B(const vsip_cvview_##A* a, const vsip_cvview_##B* r) { \
    copy<false>("vsip_cvcopy_" #A "_" #B, a, r);                                   \
  }                                                                                \
  void vsip_cmcopy_##A##_##B(const vsip_cmview_##A* a, const vsip_cmview_##B* r) { \
    copy<false>("vsip_cmcopy_" #A "_" #B, a, r);                                   \
  }
TRANSHIP_VSIP_FLOAT_PAIRS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

#define TRANSHIP_DEFINE(T)                                                                                \
  void vsip_vcopyto_user_##T(const vsip_vview_##T* a, vsip_scalar_##T* array) {                           \
    copy_user("vsip_vcopyto_user_" #T, a, VSIP_ROW, array, true);                                         \
  }                                                                                                       \
  void vsip_vcopyfrom_user_##T(const vsip_scalar_##T* array, const vsip_vview_##T* r) {                   \
    copy_user("vsip_vcopyfrom_user_" #T, r, VSIP_ROW, const_cast<vsip_scalar_##T*>(array), false);        \
  }                                                                                                       \
  void vsip_mcopyto_user_##T(const vsip_mview_##T* a, vsip_major major, vsip_scalar_##T* array) {         \
    copy_user("vsip_mcopyto_user_" #T, a, major, array, true);                                            \
  }                                                                                                       \
  void vsip_mcopyfrom_user_##T(const vsip_scalar_##T* array, vsip_major major, const vsip_mview_##T* r) { \
    copy_user("vsip_mcopyfrom_user_" #T, r, major, const_cast<vsip_scalar_##T*>(array), false);           \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
void vsip_vcopyto_user_vi(const vsip_vview_vi* a, vsip_scalar_vi* array) {
  copy_user("vsip_vcopyto_user_vi", a, VSIP_ROW, array, true);
}
void vsip_vcopyfrom_user_vi(const vsip_scalar_vi* array, const vsip_vview_vi* r) {
  copy_user("vsip_vcopyfrom_user_vi", r, VSIP_ROW, const_cast<vsip_scalar_vi*>(array), false);
}
#define TRANSHIP_DEFINE(T)                                                                                       \
  void vsip_cvcopyto_user_##T(const vsip_cvview_##T* a, vsip_scalar_##T* real, vsip_scalar_##T* imaginary) {     \
    copy_user("vsip_cvcopyto_user_" #T, a, VSIP_ROW, real, imaginary, true);                                     \
  }                                                                                                              \
  void vsip_cvcopyfrom_user_##T(const vsip_scalar_##T* real, const vsip_scalar_##T* imaginary,                   \
                                const vsip_cvview_##T* r) {                                                      \
    copy_user("vsip_cvcopyfrom_user_" #T, r, VSIP_ROW, const_cast<vsip_scalar_##T*>(real),                       \
              const_cast<vsip_scalar_##T*>(imaginary), false);                                                   \
  }                                                                                                              \
  void vsip_cmcopyto_user_##T(const vsip_cmview_##T* a, vsip_major major, vsip_scalar_##T* real,                 \
                              vsip_scalar_##T* imaginary) {                                                      \
    copy_user("vsip_cmcopyto_user_" #T, a, major, real, imaginary, true);                                        \
  }                                                                                                              \
  void vsip_cmcopyfrom_user_##T(const vsip_scalar_##T* real, const vsip_scalar_##T* imaginary, vsip_major major, \
                                const vsip_cmview_##T* r) {                                                      \
    copy_user("vsip_cmcopyfrom_user_" #T, r, major, const_cast<vsip_scalar_##T*>(real),                          \
              const_cast<vsip_scalar_##T*>(imaginary), false);                                                   \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
