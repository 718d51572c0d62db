// Scalar functions of complex numbers that vsip.h does not define inline.
#include <tranship/face/vsip/loops.hpp>

using namespace tranship::vsip;

#define TRANSHIP_DEFINE(T)                                                                 \
  vsip_scalar_##T vsip_cmag_##T(vsip_cscalar_##T a) {                                      \
    return std::hypot(a.r, a.i);                                                           \
  }                                                                                        \
  vsip_scalar_##T vsip_arg_##T(vsip_cscalar_##T a) {                                       \
    return std::atan2(a.i, a.r);                                                           \
  }                                                                                        \
  vsip_cscalar_##T vsip_cdiv_##T(vsip_cscalar_##T a, vsip_cscalar_##T b) {                 \
    return scalar_of(value_of(a) / value_of(b));                                           \
  }                                                                                        \
  vsip_cscalar_##T vsip_crecip_##T(vsip_cscalar_##T a) {                                   \
    return scalar_of(vsip_scalar_##T(1) / value_of(a));                                    \
  }                                                                                        \
  vsip_cscalar_##T vsip_cexp_##T(vsip_cscalar_##T a) {                                     \
    return scalar_of(Cx<vsip_scalar_##T>::of(std::exp(value_of(a).standard())));           \
  }                                                                                        \
  vsip_cscalar_##T vsip_clog_##T(vsip_cscalar_##T a) {                                     \
    return scalar_of(Cx<vsip_scalar_##T>::of(std::log(value_of(a).standard())));           \
  }                                                                                        \
  vsip_cscalar_##T vsip_csqrt_##T(vsip_cscalar_##T a) {                                    \
    return scalar_of(Cx<vsip_scalar_##T>::of(std::sqrt(value_of(a).standard())));          \
  }                                                                                        \
  void vsip_polar_##T(vsip_cscalar_##T a, vsip_scalar_##T* size, vsip_scalar_##T* angle) { \
    if (!given("vsip_polar_" #T, "place for the magnitude", size) ||                       \
        !given("vsip_polar_" #T, "place for the angle", angle))                            \
      return;                                                                              \
    *size = vsip_cmag_##T(a);                                                              \
    *angle = vsip_arg_##T(a);                                                              \
  }                                                                                        \
  vsip_cscalar_##T vsip_rect_##T(vsip_scalar_##T size, vsip_scalar_##T angle) {            \
    return {size * std::cos(angle), size * std::sin(angle)};                               \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
