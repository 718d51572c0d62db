// Private: the mark of functions that are parts of a loop, and have to be inlined into it.
#pragma once

#include <tranship/base/sanitizers.hpp>

// Sanitizers check every access of what is inlined: a minute of compiling, where calls find the same.
#if defined(TRANSHIP_SANITIZED)
#define TRANSHIP_INLINE inline
#else
#define TRANSHIP_INLINE [[gnu::always_inline]] inline
#endif
