// Elementwise functions of one kind of element: the tables of vsip.h, each line of which is one expression.
#include <tranship/face/vsip/operations.hpp>

using namespace tranship::vsip;

#define TRANSHIP_UNARY(N, T)                                               \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* r) { \
    map("vsip_v" #N "_" #T, op_##N, r, a);                                 \
  }                                                                        \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* r) { \
    map("vsip_m" #N "_" #T, op_##N, r, a);                                 \
  }
#define TRANSHIP_BINARY(N, T)                                                                       \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* b, const vsip_vview_##T* r) { \
    map("vsip_v" #N "_" #T, op_##N, r, a, b);                                                       \
  }                                                                                                 \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* b, const vsip_mview_##T* r) { \
    map("vsip_m" #N "_" #T, op_##N, r, a, b);                                                       \
  }
#define TRANSHIP_SCALAR(N, T)                                                                  \
  void vsip_sv##N##_##T(vsip_scalar_##T s, const vsip_vview_##T* a, const vsip_vview_##T* r) { \
    map(                                                                                       \
        "vsip_sv" #N "_" #T, [s](auto x) { return op_##N(s, x); }, r, a);                      \
  }                                                                                            \
  void vsip_sm##N##_##T(vsip_scalar_##T s, const vsip_mview_##T* a, const vsip_mview_##T* r) { \
    map(                                                                                       \
        "vsip_sm" #N "_" #T, [s](auto x) { return op_##N(s, x); }, r, a);                      \
  }
#define TRANSHIP_COMPARE(N, T)                                                                     \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* b, const vsip_vview_bl* r) { \
    map("vsip_v" #N "_" #T, op_##N, r, a, b);                                                      \
  }                                                                                                \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* b, const vsip_mview_bl* r) { \
    map("vsip_m" #N "_" #T, op_##N, r, a, b);                                                      \
  }                                                                                                \
  void vsip_sv##N##_##T(vsip_scalar_##T s, const vsip_vview_##T* a, const vsip_vview_bl* r) {      \
    map(                                                                                           \
        "vsip_sv" #N "_" #T, [s](auto x) { return op_##N(s, x); }, r, a);                          \
  }                                                                                                \
  void vsip_sm##N##_##T(vsip_scalar_##T s, const vsip_mview_##T* a, const vsip_mview_bl* r) {      \
    map(                                                                                           \
        "vsip_sm" #N "_" #T, [s](auto x) { return op_##N(s, x); }, r, a);                          \
  }
#define TRANSHIP_CUNARY(N, T)                                                 \
  void vsip_cv##N##_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* r) { \
    map("vsip_cv" #N "_" #T, op_##N, r, a);                                   \
  }                                                                           \
  void vsip_cm##N##_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* r) { \
    map("vsip_cm" #N "_" #T, op_##N, r, a);                                   \
  }
#define TRANSHIP_CBINARY(N, T)                                                                          \
  void vsip_cv##N##_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b, const vsip_cvview_##T* r) { \
    map("vsip_cv" #N "_" #T, op_##N, r, a, b);                                                          \
  }                                                                                                     \
  void vsip_cm##N##_##T(const vsip_cmview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r) { \
    map("vsip_cm" #N "_" #T, op_##N, r, a, b);                                                          \
  }
#define TRANSHIP_CSCALAR(N, T)                                                                          \
  void vsip_csv##N##_##T(vsip_cscalar_##T s, const vsip_cvview_##T* a, const vsip_cvview_##T* r) {      \
    map(                                                                                                \
        "vsip_csv" #N "_" #T, [s](auto x) { return op_##N(value_of(s), x); }, r, a);                    \
  }                                                                                                     \
  void vsip_csm##N##_##T(vsip_cscalar_##T s, const vsip_cmview_##T* a, const vsip_cmview_##T* r) {      \
    map(                                                                                                \
        "vsip_csm" #N "_" #T, [s](auto x) { return op_##N(value_of(s), x); }, r, a);                    \
  }                                                                                                     \
  void vsip_rscv##N##_##T(vsip_scalar_##T s, const vsip_cvview_##T* a, const vsip_cvview_##T* r) {      \
    map(                                                                                                \
        "vsip_rscv" #N "_" #T, [s](auto x) { return op_##N(s, x); }, r, a);                             \
  }                                                                                                     \
  void vsip_rscm##N##_##T(vsip_scalar_##T s, const vsip_cmview_##T* a, const vsip_cmview_##T* r) {      \
    map(                                                                                                \
        "vsip_rscm" #N "_" #T, [s](auto x) { return op_##N(s, x); }, r, a);                             \
  }                                                                                                     \
  void vsip_rcv##N##_##T(const vsip_vview_##T* a, const vsip_cvview_##T* b, const vsip_cvview_##T* r) { \
    map("vsip_rcv" #N "_" #T, op_##N, r, a, b);                                                         \
  }                                                                                                     \
  void vsip_rcm##N##_##T(const vsip_mview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r) { \
    map("vsip_rcm" #N "_" #T, op_##N, r, a, b);                                                         \
  }

#define TRANSHIP_DEFINE(T)                          \
  TRANSHIP_VSIP_REAL_UNARY(TRANSHIP_UNARY, T)       \
  TRANSHIP_VSIP_REAL_BINARY(TRANSHIP_BINARY, T)     \
  TRANSHIP_VSIP_SCALAR_BINARY(TRANSHIP_SCALAR, T)   \
  TRANSHIP_VSIP_COMPARISONS(TRANSHIP_COMPARE, T)    \
  TRANSHIP_VSIP_COMPLEX_UNARY(TRANSHIP_CUNARY, T)   \
  TRANSHIP_VSIP_COMPLEX_BINARY(TRANSHIP_CBINARY, T) \
  TRANSHIP_VSIP_SCALAR_BINARY(TRANSHIP_CSCALAR, T)
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

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
