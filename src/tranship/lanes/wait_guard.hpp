// Detail: WaitGuard, by which waits in the kernels of a device end when what they wait for does not come. Every 64
// looks a wait reads the clock and the guard, which takes no time that can be measured (docs/gpu-facts.md). The first
// one that has waited for too long fills in a record in memory of the host, and all waits under the guard give up:
//
//   traps      the kernel is stopped. All of the card's context is lost, and every call of the process that uses it
//              fails; the record can be read.
//   runs out   the wait returns without what it has waited for, as do all later ones, each after 64 looks. The kernel
//              asks HeapView::gave_up() after its waits and returns, or comes to its end with results that mean
//              nothing. The context goes on, and so does the next kernel.
//
// Who has launched the kernel throws what lost_wait() (fabric/lanes/lost_wait.hpp) makes of the record. Without a
// guard, a wait traps after `default_limit_ns`, and nothing says why. Waits on the CPU have the deadline of their rank
// and throw by themselves; they need no guard.
#pragma once

#include <tranship/kernels/word.hpp>

namespace tranship {

/// What the first wait that has given up says of itself. It lies in memory that the device and the host reach, and is
/// zero before.
struct alignas(64) WaitRecord {
  static constexpr unsigned long long complete = 1;
  static constexpr int call_max = 40;
  static constexpr int file_max = 64;

  unsigned long long state;         ///< `complete` once all else is there; else 0
  unsigned long long offset_bytes;  ///< of the word in the heap of `rank`
  unsigned long long wanted;
  unsigned long long seen;
  unsigned long long waited_ns;
  int rank;
  int block;
  int raised_by;  ///< the rank without which the wait cannot end; -1 for none
  int line;       ///< where the call is, in `file`
  Comparison comparison;
  bool is_signed;       ///< `wanted` and `seen` are
  char call[call_max];  ///< its name: the first bytes, as many as there is room for, and a 0
  char file[file_max];  ///< the last bytes, and a 0
};

/// Lies in memory of the device. Used for one launch after the other; who launches sets `state` to 0 and clears the
/// record before.
struct WaitGuard {
  /// As long as waits of the CPU take where nothing else is said.
  static constexpr unsigned long long default_limit_ns = 60'000'000'000;
  enum State : unsigned long long { waiting, claimed, given_up };

  unsigned long long state = waiting;
  unsigned long long limit_ns = default_limit_ns;
  WaitRecord* record = nullptr;
  bool traps = true;  ///< else kernels run out
};

namespace detail {

/// A wait of a rank in a group of lanes, beside the word that it looks at.
struct WaitPlace {
  WaitGuard* guard = nullptr;
  int rank = 0;
  int raised_by = -1;                   ///< the rank without which it cannot end; -1 for none
  unsigned long long offset_bytes = 0;  ///< of the word in the rank's heap
};

#if defined(__CUDACC__)
__device__ inline unsigned long long global_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

/// Sleeps for a moment and returns true, or returns false if the wait is to give up.
__device__ inline bool may_wait(const WaitGuard* guard, unsigned long long waited_ns) {
  if (guard) {
    if (load_word(&guard->state) == WaitGuard::given_up || waited_ns > guard->limit_ns) return false;
  } else if (waited_ns > WaitGuard::default_limit_ns) {
    return false;
  }
  __nanosleep(100);
  return true;
}

/// Fills in the record if this wait is the first to give up. Returns false if another one has claimed the record and
/// not completed it: a trap would then end that one. A function of its own, because it takes many registers and runs at
/// most once.
__device__ __noinline__ inline bool give_up(WaitPlace place, int block, Comparison comparison, bool is_signed,
                                            unsigned long long wanted, unsigned long long seen,
                                            unsigned long long waited_ns, const char* call, const char* file,
                                            int line) {
  if (!place.guard) trap();
  WaitGuard& guard = *place.guard;
  const unsigned long long state =
      update_word<AtomicOp::compare_swap, unsigned long long>(&guard.state, WaitGuard::claimed, WaitGuard::waiting);
  if (state == WaitGuard::claimed) return false;
  if (state == WaitGuard::waiting) {
    if (guard.record) {
      volatile WaitRecord& record = *guard.record;
      record.offset_bytes = place.offset_bytes;
      record.wanted = wanted;
      record.seen = seen;
      record.waited_ns = waited_ns;
      record.rank = place.rank;
      record.block = block;
      record.raised_by = place.raised_by;
      record.line = line;
      record.comparison = comparison;
      record.is_signed = is_signed;
      for (int i = 0; call[i] && i < WaitRecord::call_max - 1; ++i) record.call[i] = call[i];
      int size = 0;
      while (file[size]) ++size;
      const int first = size > WaitRecord::file_max - 1 ? size - (WaitRecord::file_max - 1) : 0;
      for (int i = first; i < size; ++i) record.file[i - first] = file[i];
      word_fence();
      store_word(&guard.record->state, WaitRecord::complete);
    }
    // Others may end the kernel as soon as they see it, so the record comes first.
    word_fence();
    store_word(&guard.state, static_cast<unsigned long long>(WaitGuard::given_up));
  }
  if (guard.traps) trap();
  return true;
}
#endif

}  // namespace detail
}  // namespace tranship
