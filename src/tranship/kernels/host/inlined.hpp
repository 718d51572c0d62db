// Private: TRANSHIP_INLINE, the mark of functions that are parts of a loop and must be inlined into it.
#pragma once

#include <tranship/base/sanitizers.hpp>

// With a sanitizer they stay functions: inlined, their checks take a minute to compile and find no more.
#if defined(TRANSHIP_SANITIZED)
#define TRANSHIP_INLINE inline
#else
#define TRANSHIP_INLINE [[gnu::always_inline]] inline
#endif
