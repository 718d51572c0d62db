// The functions that compilers call in code instrumented for thread sanitizers, implemented by the access log of the
// simulated rank that runs. On all other threads, and outside simulations, they check one pointer and return. Names and
// arguments are those of g++ 12 and clang 14 and later.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tranship/fabric/sim/access_log.hpp>

// Defined only by run-time libraries that implement the same functions, or instrument memory in another way.
extern "C" {
[[gnu::weak]] void __tsan_flush_memory();
[[gnu::weak]] void __asan_init();
/// Makes the linker include this file, even for programs without instrumented objects.
extern const char tranship_race_hooks;
const char tranship_race_hooks = 1;
}

namespace {

using tranship::AccessLog;
using tranship::detail::access_log;
using Does = AccessLog::Does;
using Atomic = AccessLog::Atomic;
using Size = unsigned long;

[[gnu::always_inline]] inline void note(const volatile void* at, std::size_t bytes, Does does,
                                        const void* code) noexcept {
  if (access_log != nullptr) [[unlikely]]
    access_log->note(at, bytes, does, code);
}
void note_range(const volatile void* at, std::size_t bytes, Does does, const void* code) noexcept {
  if (access_log != nullptr) [[unlikely]]
    access_log->note_range(at, bytes, does, code);
}

// Compilers pass an order as the number of __ATOMIC_RELAXED and so on, possibly with hardware bits above it.
int order_of(int order) noexcept {
  return order & 0x7fff;
}
bool acquires(int order) noexcept {
  return order_of(order) != __ATOMIC_RELAXED && order_of(order) != __ATOMIC_RELEASE;
}
bool releases(int order) noexcept {
  return order_of(order) >= __ATOMIC_RELEASE;
}
void note_load(const volatile void* at, std::size_t bytes, int order, const void* code) noexcept {
  if (access_log != nullptr) [[unlikely]]
    access_log->note_atomic(at, bytes, {Atomic::Does::load, acquires(order), false}, code);
}
void note_store(const volatile void* at, std::size_t bytes, int order, const void* code) noexcept {
  if (access_log != nullptr) [[unlikely]]
    access_log->note_atomic(at, bytes, {Atomic::Does::store, false, releases(order)}, code);
}
void note_update(const volatile void* at, std::size_t bytes, int order, const void* code) noexcept {
  if (access_log != nullptr) [[unlikely]]
    access_log->note_atomic(at, bytes, {Atomic::Does::update, acquires(order), releases(order)}, code);
}

}  // namespace

#define CODE __builtin_return_address(0)
#define LOADS(name, bytes)             \
  void name(void* at) {                \
    note(at, bytes, Does::load, CODE); \
  }
#define STORES(name, bytes)             \
  void name(void* at) {                 \
    note(at, bytes, Does::store, CODE); \
  }
#define LOADS_AND_STORES(name, bytes)   \
  void name(void* at) {                 \
    note(at, bytes, Does::load, CODE);  \
    note(at, bytes, Does::store, CODE); \
  }
#define ACCESSES(bytes)                                 \
  LOADS(__tsan_read##bytes, bytes)                      \
  LOADS(__tsan_unaligned_read##bytes, bytes)            \
  LOADS(__tsan_volatile_read##bytes, bytes)             \
  LOADS(__tsan_unaligned_volatile_read##bytes, bytes)   \
  STORES(__tsan_write##bytes, bytes)                    \
  STORES(__tsan_unaligned_write##bytes, bytes)          \
  STORES(__tsan_volatile_write##bytes, bytes)           \
  STORES(__tsan_unaligned_volatile_write##bytes, bytes) \
  LOADS_AND_STORES(__tsan_read_write##bytes, bytes)     \
  LOADS_AND_STORES(__tsan_unaligned_read_write##bytes, bytes)

// Each atomic is made before it is noted, and with the strongest order, since the compiler's order is only a number
// here. Only stores, where the strongest order costs something, distinguish orders.
#define ATOMICS(bits, Word)                                                                                           \
  Word __tsan_atomic##bits##_load(const volatile Word* at, int order) {                                               \
    const Word value = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                         \
    note_load(at, sizeof(Word), order, CODE);                                                                         \
    return value;                                                                                                     \
  }                                                                                                                   \
  void __tsan_atomic##bits##_store(volatile Word* at, Word value, int order) {                                        \
    if (order_of(order) == __ATOMIC_SEQ_CST)                                                                          \
      __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                                  \
    else                                                                                                              \
      __atomic_store_n(at, value, __ATOMIC_RELEASE);                                                                  \
    note_store(at, sizeof(Word), order, CODE);                                                                        \
  }                                                                                                                   \
  UPDATE(bits, Word, exchange, __atomic_exchange_n)                                                                   \
  UPDATE(bits, Word, fetch_add, __atomic_fetch_add)                                                                   \
  UPDATE(bits, Word, fetch_sub, __atomic_fetch_sub)                                                                   \
  UPDATE(bits, Word, fetch_and, __atomic_fetch_and)                                                                   \
  UPDATE(bits, Word, fetch_or, __atomic_fetch_or)                                                                     \
  UPDATE(bits, Word, fetch_xor, __atomic_fetch_xor)                                                                   \
  UPDATE(bits, Word, fetch_nand, __atomic_fetch_nand)                                                                 \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile Word* at, Word* expected, Word desired, int order,       \
                                                    int order_failed) {                                               \
    const bool made = __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    made ? note_update(at, sizeof(Word), order, CODE) : note_load(at, sizeof(Word), order_failed, CODE);              \
    return made;                                                                                                      \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile Word* at, Word* expected, Word desired, int order,         \
                                                  int order_failed) {                                                 \
    const bool made = __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    made ? note_update(at, sizeof(Word), order, CODE) : note_load(at, sizeof(Word), order_failed, CODE);              \
    return made;                                                                                                      \
  }                                                                                                                   \
  Word __tsan_atomic##bits##_compare_exchange_val(volatile Word* at, Word expected, Word desired, int order,          \
                                                  int order_failed) {                                                 \
    const bool made = __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    made ? note_update(at, sizeof(Word), order, CODE) : note_load(at, sizeof(Word), order_failed, CODE);              \
    return expected;                                                                                                  \
  }
#define UPDATE(bits, Word, name, builtin)                                       \
  Word __tsan_atomic##bits##_##name(volatile Word* at, Word value, int order) { \
    const Word before = builtin(at, value, __ATOMIC_SEQ_CST);                   \
    note_update(at, sizeof(Word), order, CODE);                                 \
    return before;                                                              \
  }

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wmissing-prototypes"
#endif

extern "C" {

/// Called before main(), by each instrumented object; earlier if the run-time library of a sanitizer calls it.
void __tsan_init() {
  tranship::detail::race_hooks.are_there = true;
  if (__tsan_flush_memory != nullptr) tranship::detail::race_hooks.obstacle = "the thread sanitizer";
  if (__asan_init != nullptr) tranship::detail::race_hooks.obstacle = "the address sanitizer";
}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void* at, Size bytes) {
  note_range(at, bytes, Does::load, CODE);
}
void __tsan_write_range(void* at, Size bytes) {
  note_range(at, bytes, Does::store, CODE);
}
void __tsan_vptr_read(void** at) {
  note(at, sizeof *at, Does::load, CODE);
}
void __tsan_vptr_update(void** at, void*) {
  note(at, sizeof *at, Does::store, CODE);
}

void* __tsan_memcpy(void* to, const void* from, Size bytes) {
  note_range(from, bytes, Does::load, CODE);
  note_range(to, bytes, Does::store, CODE);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, Size bytes) {
  note_range(from, bytes, Does::load, CODE);
  note_range(to, bytes, Does::store, CODE);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, Size bytes) {
  note_range(to, bytes, Does::store, CODE);
  return std::memset(to, value, bytes);
}
/// Stands for memcmp and bcmp, which the instrumentation does not change.
int tranship_hooked_memcmp(const void* a, const void* b, Size bytes) {
  note_range(a, bytes, Does::load, CODE);
  note_range(b, bytes, Does::load, CODE);
  return std::memcmp(a, b, bytes);
}

ATOMICS(8, std::uint8_t)
ATOMICS(16, std::uint16_t)
ATOMICS(32, std::uint32_t)
ATOMICS(64, std::uint64_t)

void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#if defined(__SIZEOF_INT128__) && defined(__x86_64__)

// g++ would call a library for these; cmpxchg16b of x86-64-v2 does it in one instruction on two words.
using Pair = unsigned __int128;

}  // extern "C"

namespace {

/// Replaces the pair by change(pair) and returns the previous one.
template <class F>
Pair update_pair(volatile Pair* at, F&& change) {
  Pair before = *const_cast<const Pair*>(at);
  for (;;) {
    const Pair seen = __sync_val_compare_and_swap(at, before, change(before));
    if (seen == before) return before;
    before = seen;
  }
}

}  // namespace

extern "C" {

Pair __tsan_atomic128_load(const volatile Pair* at, int order) {
  const Pair value = __sync_val_compare_and_swap(const_cast<volatile Pair*>(at), Pair(0), Pair(0));
  note_load(at, sizeof(Pair), order, CODE);
  return value;
}
void __tsan_atomic128_store(volatile Pair* at, Pair value, int order) {
  update_pair(at, [&](Pair) { return value; });
  note_store(at, sizeof(Pair), order, CODE);
}
#define UPDATE_PAIR(name, expression)                                                           \
  Pair __tsan_atomic128_##name(volatile Pair* at, Pair value, int order) {                      \
    const Pair before = update_pair(at, [&]([[maybe_unused]] Pair was) { return expression; }); \
    note_update(at, sizeof(Pair), order, CODE);                                                 \
    return before;                                                                              \
  }
UPDATE_PAIR(exchange, value)
UPDATE_PAIR(fetch_add, was + value)
UPDATE_PAIR(fetch_sub, was - value)
UPDATE_PAIR(fetch_and, was& value)
UPDATE_PAIR(fetch_or, was | value)
UPDATE_PAIR(fetch_xor, was ^ value)
UPDATE_PAIR(fetch_nand, ~(was& value))

Pair __tsan_atomic128_compare_exchange_val(volatile Pair* at, Pair expected, Pair desired, int order,
                                           int order_failed) {
  const Pair seen = __sync_val_compare_and_swap(at, expected, desired);
  seen == expected ? note_update(at, sizeof(Pair), order, CODE) : note_load(at, sizeof(Pair), order_failed, CODE);
  return seen;
}
int __tsan_atomic128_compare_exchange_strong(volatile Pair* at, Pair* expected, Pair desired, int order,
                                             int order_failed) {
  const Pair seen = __sync_val_compare_and_swap(at, *expected, desired);
  const bool made = seen == *expected;
  made ? note_update(at, sizeof(Pair), order, CODE) : note_load(at, sizeof(Pair), order_failed, CODE);
  *expected = seen;
  return made;
}
int __tsan_atomic128_compare_exchange_weak(volatile Pair* at, Pair* expected, Pair desired, int order,
                                           int order_failed) {
  const Pair seen = __sync_val_compare_and_swap(at, *expected, desired);
  const bool made = seen == *expected;
  made ? note_update(at, sizeof(Pair), order, CODE) : note_load(at, sizeof(Pair), order_failed, CODE);
  *expected = seen;
  return made;
}

#endif

}  // extern "C"
