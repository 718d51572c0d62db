// Detail: Which sanitizer this is compiled with, as macros that both g++ and clang set: TRANSHIP_TSAN, TRANSHIP_ASAN,
// and TRANSHIP_SANITIZED for either of them (and for clang's memory sanitizer). Preprocessor only, so kernels may
// include it.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define TRANSHIP_TSAN
#elif defined(__SANITIZE_ADDRESS__)
#define TRANSHIP_ASAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRANSHIP_TSAN
#elif __has_feature(address_sanitizer)
#define TRANSHIP_ASAN
#elif __has_feature(memory_sanitizer)
#define TRANSHIP_SANITIZED
#endif
#endif

#if defined(TRANSHIP_TSAN) || defined(TRANSHIP_ASAN)
#define TRANSHIP_SANITIZED
#endif
