// Loops over views of vsip.h beside the same loops over a pointer and strides.
#pragma once

#include <harness/registry.hpp>

namespace tranship::bench {

void measure_view_access(Report& report);

}  // namespace tranship::bench
