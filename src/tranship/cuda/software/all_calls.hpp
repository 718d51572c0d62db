// Private: AllCalls, the calls of driver_calls.def and of more_calls.def.
#pragma once

#include <tranship/cuda/driver_calls.hpp>

namespace tranship::cuda::software {

struct AllCalls : DriverCalls {
#define TRANSHIP_DRIVER_CALL(name) decltype(&::name) name = nullptr;
#include <tranship/cuda/software/more_calls.def>
#undef TRANSHIP_DRIVER_CALL
};

}  // namespace tranship::cuda::software
