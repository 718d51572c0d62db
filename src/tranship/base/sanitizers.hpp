// Detail: Macros for the sanitizer of this build, set for g++ and clang alike: TRANSHIP_TSAN, TRANSHIP_ASAN, and
// TRANSHIP_SANITIZED for either of them and for clang's memory sanitizer. Preprocessor only, so kernels may include it.
// The race hooks (docs/one-sided.md) reuse the instrumentation of the thread sanitizer but are not a sanitizer.
// TRANSHIP_UNHOOKED marks functions by which ranks wait for each other: their accesses order those of the program and
// must not be hooked. With race hooks such functions are not inlined.
#pragma once

#if defined(TRANSHIP_RACE_HOOKS)
#if !defined(__has_attribute)
#define TRANSHIP_UNHOOKED
#elif __has_attribute(disable_sanitizer_instrumentation)
#define TRANSHIP_UNHOOKED __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define TRANSHIP_UNHOOKED __attribute__((no_sanitize_thread))
#endif
#else
#define TRANSHIP_UNHOOKED
#endif

#if defined(TRANSHIP_RACE_HOOKS)
#elif defined(__SANITIZE_THREAD__)
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
