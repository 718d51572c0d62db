// Elementwise functions of float and of complex float.
#include <tranship/face/vsip/elementwise.hpp>

TRANSHIP_FLOAT_FUNCTIONS(f)
