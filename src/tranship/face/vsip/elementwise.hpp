// Private: The definitions of elementwise functions of one kind of element, as macros over the tables of vsip.h: each
// line of a table is one expression. One source for each kind of element, so that they compile side by side.
#pragma once

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
    map_scalar("vsip_sv" #N "_" #T, op_##N, s, r, a);                                          \
  }                                                                                            \
  void vsip_sm##N##_##T(vsip_scalar_##T s, const vsip_mview_##T* a, const vsip_mview_##T* r) { \
    map_scalar("vsip_sm" #N "_" #T, op_##N, s, r, a);                                          \
  }
#define TRANSHIP_COMPARE(N, T)                                                                     \
  void vsip_v##N##_##T(const vsip_vview_##T* a, const vsip_vview_##T* b, const vsip_vview_bl* r) { \
    map("vsip_v" #N "_" #T, op_##N, r, a, b);                                                      \
  }                                                                                                \
  void vsip_m##N##_##T(const vsip_mview_##T* a, const vsip_mview_##T* b, const vsip_mview_bl* r) { \
    map("vsip_m" #N "_" #T, op_##N, r, a, b);                                                      \
  }                                                                                                \
  void vsip_sv##N##_##T(vsip_scalar_##T s, const vsip_vview_##T* a, const vsip_vview_bl* r) {      \
    map_scalar("vsip_sv" #N "_" #T, op_##N, s, r, a);                                              \
  }                                                                                                \
  void vsip_sm##N##_##T(vsip_scalar_##T s, const vsip_mview_##T* a, const vsip_mview_bl* r) {      \
    map_scalar("vsip_sm" #N "_" #T, op_##N, s, r, a);                                              \
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
    map_scalar("vsip_csv" #N "_" #T, op_##N, value_of(s), r, a);                                        \
  }                                                                                                     \
  void vsip_csm##N##_##T(vsip_cscalar_##T s, const vsip_cmview_##T* a, const vsip_cmview_##T* r) {      \
    map_scalar("vsip_csm" #N "_" #T, op_##N, value_of(s), r, a);                                        \
  }                                                                                                     \
  void vsip_rscv##N##_##T(vsip_scalar_##T s, const vsip_cvview_##T* a, const vsip_cvview_##T* r) {      \
    map_scalar("vsip_rscv" #N "_" #T, op_##N, s, r, a);                                                 \
  }                                                                                                     \
  void vsip_rscm##N##_##T(vsip_scalar_##T s, const vsip_cmview_##T* a, const vsip_cmview_##T* r) {      \
    map_scalar("vsip_rscm" #N "_" #T, op_##N, s, r, a);                                                 \
  }                                                                                                     \
  void vsip_rcv##N##_##T(const vsip_vview_##T* a, const vsip_cvview_##T* b, const vsip_cvview_##T* r) { \
    map("vsip_rcv" #N "_" #T, op_##N, r, a, b);                                                         \
  }                                                                                                     \
  void vsip_rcm##N##_##T(const vsip_mview_##T* a, const vsip_cmview_##T* b, const vsip_cmview_##T* r) { \
    map("vsip_rcm" #N "_" #T, op_##N, r, a, b);                                                         \
  }

#define TRANSHIP_FLOAT_FUNCTIONS(T)                 \
  TRANSHIP_VSIP_REAL_UNARY(TRANSHIP_UNARY, T)       \
  TRANSHIP_VSIP_REAL_BINARY(TRANSHIP_BINARY, T)     \
  TRANSHIP_VSIP_SCALAR_BINARY(TRANSHIP_SCALAR, T)   \
  TRANSHIP_VSIP_COMPARISONS(TRANSHIP_COMPARE, T)    \
  TRANSHIP_VSIP_COMPLEX_UNARY(TRANSHIP_CUNARY, T)   \
  TRANSHIP_VSIP_COMPLEX_BINARY(TRANSHIP_CBINARY, T) \
  TRANSHIP_VSIP_SCALAR_BINARY(TRANSHIP_CSCALAR, T)
