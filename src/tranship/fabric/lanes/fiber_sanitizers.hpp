// Private: which sanitizer wants to know of fibers, TRANSHIP_FIBERS_OF_TSAN or TRANSHIP_FIBERS_OF_ASAN, and its calls.
#pragma once

// Both sanitizers want to be told when a thread changes its stack. g++ and clang say differently that one is on.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRANSHIP_FIBERS_OF_TSAN
#elif __has_feature(address_sanitizer)
#define TRANSHIP_FIBERS_OF_ASAN
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TRANSHIP_FIBERS_OF_TSAN
#elif defined(__SANITIZE_ADDRESS__)
#define TRANSHIP_FIBERS_OF_ASAN
#endif
#if defined(TRANSHIP_FIBERS_OF_TSAN)
#include <sanitizer/tsan_interface.h>
#elif defined(TRANSHIP_FIBERS_OF_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
