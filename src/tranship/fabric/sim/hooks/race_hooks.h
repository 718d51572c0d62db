/* Private: included first in every C and C++ source that is compiled with tranship::race_hooks. It sends calls of these
   functions, also those that the compiler makes for its own copies, to the hooks: compilers instrument loads and
   stores, but leave these functions to the run-time library of the sanitizer. (The C library redirects its own calls
   in the same way.) */
#if defined(__SANITIZE_ADDRESS__)
#error "tranship::race_hooks cannot be combined with -fsanitize=address: build the program with one of the two"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#error "tranship::race_hooks cannot be combined with -fsanitize=address or memory: build the program with one of the two"
#endif
#endif

__asm__("memcpy = __tsan_memcpy");
__asm__("memmove = __tsan_memmove");
__asm__("memset = __tsan_memset");
__asm__("memcmp = tranship_hooked_memcmp");
__asm__("bcmp = tranship_hooked_memcmp");

#if !defined(__clang__)
/* g++ expands small ones to instructions that it does not instrument; the standard library uses these names. */
#if defined(__cplusplus)
extern "C" {
#endif
extern void* __tsan_memcpy(void*, const void*, __SIZE_TYPE__) __attribute__((__nothrow__));
extern void* __tsan_memmove(void*, const void*, __SIZE_TYPE__) __attribute__((__nothrow__));
extern void* __tsan_memset(void*, int, __SIZE_TYPE__) __attribute__((__nothrow__));
#if defined(__cplusplus)
}
#endif
#define __builtin_memcpy __tsan_memcpy
#define __builtin_memmove __tsan_memmove
#define __builtin_memset __tsan_memset
#endif
