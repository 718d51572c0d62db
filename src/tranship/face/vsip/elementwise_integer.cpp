// Elementwise functions of integers and of Boolean values.
#include <tranship/face/vsip/elementwise.hpp>

#define TRANSHIP_DEFINE(T)                         \
  TRANSHIP_VSIP_INTEGER_UNARY(TRANSHIP_UNARY, T)   \
  TRANSHIP_VSIP_INTEGER_BINARY(TRANSHIP_BINARY, T) \
  TRANSHIP_VSIP_INTEGER_SCALAR(TRANSHIP_SCALAR, T) \
  TRANSHIP_VSIP_COMPARISONS(TRANSHIP_COMPARE, T)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

#define TRANSHIP_LOGIC(N, T)                                                                        \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* b, const vsip_vview_##T* r) { \
    map("vsip_v" #N "_" #T, logic_##N, r, a, b);                                                    \
  }                                                                                                 \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* b, const vsip_mview_##T* r) { \
    map("vsip_m" #N "_" #T, logic_##N, r, a, b);                                                    \
  }
TRANSHIP_VSIP_LOGIC(TRANSHIP_LOGIC, bl)
void vsip_vnot_bl(const vsip_vview_bl* a, const vsip_vview_bl* r) {
  map(
      "vsip_vnot_bl", [](auto x) { return vsip_scalar_bl(!x); }, r, a);
}
void vsip_mnot_bl(const vsip_mview_bl* a, const vsip_mview_bl* r) {
  map(
      "vsip_mnot_bl", [](auto x) { return vsip_scalar_bl(!x); }, r, a);
}

void vsip_vadd_vi(const vsip_vview_vi* a, const vsip_vview_vi* b, const vsip_vview_vi* r) {
  map("vsip_vadd_vi", op_add, r, a, b);
}
void vsip_svadd_vi(vsip_scalar_vi s, const vsip_vview_vi* a, const vsip_vview_vi* r) {
  map_scalar("vsip_svadd_vi", op_add, s, r, a);
}
void vsip_svsub_vi(vsip_scalar_vi s, const vsip_vview_vi* a, const vsip_vview_vi* r) {
  map_scalar("vsip_svsub_vi", op_sub, s, r, a);
}
#undef TRANSHIP_LOGIC
