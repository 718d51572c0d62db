// Elementwise functions of double and of complex double.
#include <tranship/face/vsip/elementwise.hpp>

TRANSHIP_FLOAT_FUNCTIONS(d)
