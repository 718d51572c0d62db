// Detail: Words, which ranks raise, update and wait for: 1, 2, 4 or 8 aligned bytes that have one value for every
// thread of every device of the machine. On the host, loads acquire, stores release and updates do both, which costs
// nothing on x86. On a device they order nothing: a word_fence() before a store or an update releases, and
// acquire_word() after a load acquires.
#pragma once

#include <tranship/base/sanitizers.hpp>
#include <tranship/kernels/shared.hpp>

namespace tranship {

enum class AtomicOp : unsigned char {
#define TRANSHIP_ATOMIC_OP(op, fetching) op,
#include <tranship/kernels/atomics.def>
};
enum class SignalOp : unsigned char { set, add };

/// How a wait compares what it sees with what it wants: `less` means seen < wanted. The numbers are NVSHMEM's.
enum class Comparison : unsigned char { equal, not_equal, greater, less_equal, less, greater_equal };

template <class T>
TRANSHIP_SHARED constexpr bool holds(T seen, Comparison comparison, T wanted) noexcept {
  switch (comparison) {
    case Comparison::equal:
      return seen == wanted;
    case Comparison::not_equal:
      return seen != wanted;
    case Comparison::greater:
      return seen > wanted;
    case Comparison::less_equal:
      return seen <= wanted;
    case Comparison::less:
      return seen < wanted;
    case Comparison::greater_equal:
      break;
  }
  return seen >= wanted;
}

namespace detail {

template <int bytes>
struct WordOf {};
template <>
struct WordOf<1> {
  using Type = unsigned char;
};
template <>
struct WordOf<2> {
  using Type = unsigned short;
};
template <>
struct WordOf<4> {
  using Type = unsigned;
};
template <>
struct WordOf<8> {
  using Type = unsigned long long;
};
/// The unsigned integer of the size of T.
template <class T>
using Word = typename WordOf<sizeof(T)>::Type;

/// The threads for which a fence orders: those on the device of the calling thread, or all in the machine. A fence for
/// one device takes a quarter of the time (docs/gpu-facts.md). The host makes no difference.
enum class Reach : unsigned char { device, system };

/// Releases earlier reads and writes to later stores and updates of words; acquires what was released with words that
/// have been loaded. A thread that stores and then loads another word needs a full_fence().
TRANSHIP_SHARED inline void word_fence([[maybe_unused]] Reach reach = Reach::system) {
#if defined(__CUDA_ARCH__)
  if (reach == Reach::device)
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  else
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#elif !defined(TRANSHIP_TSAN)  // it does not support fences
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
/// Orders all earlier reads and writes before all later ones, for all threads that use full fences.
TRANSHIP_SHARED inline void full_fence([[maybe_unused]] Reach reach = Reach::system) {
#if defined(__CUDA_ARCH__)
  if (reach == Reach::device)
    asm volatile("fence.sc.gpu;" ::: "memory");
  else
    asm volatile("fence.sc.sys;" ::: "memory");
#else
  word_fence();
#endif
}

#if defined(__CUDA_ARCH__)
__device__ inline unsigned char load_acquire(const unsigned char* at) {
  unsigned value;
  asm volatile("ld.acquire.sys.u8 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return static_cast<unsigned char>(value);
}
__device__ inline unsigned short load_acquire(const unsigned short* at) {
  unsigned short value;
  asm volatile("ld.acquire.sys.u16 %0, [%1];" : "=h"(value) : "l"(at) : "memory");
  return value;
}
__device__ inline unsigned load_acquire(const unsigned* at) {
  unsigned value;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
__device__ inline unsigned long long load_acquire(const unsigned long long* at) {
  unsigned long long value;
  asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
#endif

template <class W>
TRANSHIP_SHARED TRANSHIP_UNHOOKED inline W load_word(const W* at) {
#if defined(__CUDA_ARCH__)
  return *static_cast<const volatile W*>(at);
#else
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}
/// Acquires what was released with the value `seen` that load_word() returned. A loop that spins on load_word() and
/// acquires once leaves the nearest cache of its multiprocessor to the lanes that compute there.
template <class W>
TRANSHIP_SHARED inline void acquire_word([[maybe_unused]] const W* at, [[maybe_unused]] W seen,
                                         [[maybe_unused]] Reach reach = Reach::system) {
#if defined(__CUDA_ARCH__)
  // A load acquires from the store that it reads, at little cost. A fence takes half a microsecond (docs/gpu-facts.md),
  // and is needed only if another store has changed the word since.
  const Word<W> now = load_acquire(reinterpret_cast<const Word<W>*>(at));
  if (now != __builtin_bit_cast(Word<W>, seen)) word_fence(reach);
#endif
}
template <class W>
TRANSHIP_SHARED TRANSHIP_UNHOOKED inline void store_word(W* at, W value) {
#if defined(__CUDA_ARCH__)
  *static_cast<volatile W*>(at) = value;
#else
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
#endif
}

/// Returns the previous value; the result of `set` is unspecified. Only compare_swap uses `expected`. Words of 4 or 8
/// bytes.
template <AtomicOp op, class W>
TRANSHIP_SHARED TRANSHIP_UNHOOKED inline W update_word(W* at, W operand, W expected) {
  static_assert(sizeof(W) == 4 || sizeof(W) == 8);
  if constexpr (op == AtomicOp::fetch) return load_word(at);
#if defined(__CUDA_ARCH__)
  // CUDA's atomics of 8 bytes take only unsigned long long, and not every std::uint64_t is one.
  using Known = typename WordOf<sizeof(W)>::Type;
  auto* const word = reinterpret_cast<Known*>(at);
  const auto value = static_cast<Known>(operand);
  if constexpr (op == AtomicOp::set || op == AtomicOp::swap) return static_cast<W>(atomicExch_system(word, value));
  if constexpr (op == AtomicOp::compare_swap)
    return static_cast<W>(atomicCAS_system(word, static_cast<Known>(expected), value));
  if constexpr (op == AtomicOp::add) return static_cast<W>(atomicAdd_system(word, value));
  if constexpr (op == AtomicOp::bit_and) return static_cast<W>(atomicAnd_system(word, value));
  if constexpr (op == AtomicOp::bit_or) return static_cast<W>(atomicOr_system(word, value));
  if constexpr (op == AtomicOp::bit_xor) return static_cast<W>(atomicXor_system(word, value));
#else
  if constexpr (op == AtomicOp::set) {
    store_word(at, operand);
    return operand;
  }
  if constexpr (op == AtomicOp::swap) return __atomic_exchange_n(at, operand, __ATOMIC_ACQ_REL);
  if constexpr (op == AtomicOp::compare_swap) {
    __atomic_compare_exchange_n(at, &expected, operand, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
  }
  if constexpr (op == AtomicOp::add) return __atomic_fetch_add(at, operand, __ATOMIC_ACQ_REL);
  if constexpr (op == AtomicOp::bit_and) return __atomic_fetch_and(at, operand, __ATOMIC_ACQ_REL);
  if constexpr (op == AtomicOp::bit_or) return __atomic_fetch_or(at, operand, __ATOMIC_ACQ_REL);
  if constexpr (op == AtomicOp::bit_xor) return __atomic_fetch_xor(at, operand, __ATOMIC_ACQ_REL);
#endif
}

/// Applies a signal to its word.
template <class W>
TRANSHIP_SHARED TRANSHIP_UNHOOKED inline void raise_word(W* at, W value, SignalOp op) {
  if (op == SignalOp::set)
    store_word(at, value);
  else
    update_word<AtomicOp::add>(at, value, W{});
}

}  // namespace detail
}  // namespace tranship
