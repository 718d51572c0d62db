// Private: headers of the sanitizers' interfaces for fibers. Both sanitizers must be told when a thread changes its
// stack.
#pragma once

#include <tranship/base/sanitizers.hpp>

#if defined(TRANSHIP_TSAN)
#include <sanitizer/tsan_interface.h>
#elif defined(TRANSHIP_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
