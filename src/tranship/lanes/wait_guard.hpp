// Detail: WaitGuard, which ends waits in the kernels of a device when the awaited value does not arrive. Every 64 looks
// a wait reads the clock and the guard, at no measurable cost (docs/gpu-facts.md). The first wait that has waited for
// too long fills in a record in host memory, and then all waits under the guard give up:
//
//   traps      The kernel stops. The card's whole context is lost, and every call of the process that uses it fails;
//              the record can still be read.
//   runs out   The wait returns without its value, as do all later ones, each after 64 looks. The kernel should ask
//              HeapView::gave_up() after its waits and return; otherwise it runs to its end with meaningless results.
//              The context stays usable, and so does the next kernel.
//
// The code that launched the kernel throws the error that lost_wait() (fabric/lanes/lost_wait.hpp) makes from the
// record. Without a guard, a wait traps after `default_limit_ns` without an explanation. Waits on the CPU have the
// deadline of their rank and throw themselves; they need no guard.
#pragma once

#include <tranship/kernels/word.hpp>

namespace tranship {

/// The record of the first wait that gives up. It lies in memory that both the device and the host reach, and is zero
/// before.
struct alignas(64) WaitRecord {
  static constexpr unsigned long long complete = 1;
  static constexpr int call_max = 40;
  static constexpr int file_max = 64;

  unsigned long long state;         ///< `complete` once all other members are set, else 0
  unsigned long long offset_bytes;  ///< of the word in the heap of `rank`
  unsigned long long wanted;
  unsigned long long seen;
  unsigned long long waited_ns;
  int rank;
  int block;
  int raised_by;  ///< the rank without which the wait cannot end, or -1
  int line;       ///< line of the call in `file`
  Comparison comparison;
  bool is_signed;       ///< true if `wanted` and `seen` are signed
  char call[call_max];  ///< name of the call: as many first bytes as fit, and a 0
  char file[file_max];  ///< the last bytes that fit, and a 0
};

/// Lies in memory of the device and serves one launch at a time. Before each launch, the host sets `state` to 0 and
/// clears the record.
struct WaitGuard {
  /// The default timeout of waits on the CPU.
  static constexpr unsigned long long default_limit_ns = 60'000'000'000;
  enum State : unsigned long long { waiting, claimed, given_up };

  unsigned long long state = waiting;
  unsigned long long limit_ns = default_limit_ns;
  WaitRecord* record = nullptr;
  bool traps = true;  ///< if false, kernels run out
};

namespace detail {

/// The rank, the guard and the word of a wait in a group of lanes.
struct WaitPlace {
  WaitGuard* guard = nullptr;
  int rank = 0;
  int raised_by = -1;                   ///< the rank without which it cannot end, or -1
  unsigned long long offset_bytes = 0;  ///< of the word in the rank's heap
};

#if defined(__CUDACC__)
__device__ inline unsigned long long global_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

/// Sleeps briefly and returns true, or returns false if the wait should give up.
__device__ inline bool may_wait(const WaitGuard* guard, unsigned long long waited_ns) {
  if (guard) {
    if (load_word(&guard->state) == WaitGuard::given_up || waited_ns > guard->limit_ns) return false;
  } else if (waited_ns > WaitGuard::default_limit_ns) {
    return false;
  }
  __nanosleep(100);
  return true;
}

/// Fills in the record if this wait is the first to give up. Returns false if another wait has claimed the record and
/// not completed it, because a trap would then end that one. Not inlined, because it takes many registers and runs at
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
    // Other waits may end the kernel as soon as they see the state, so the record is completed first.
    word_fence();
    store_word(&guard.state, static_cast<unsigned long long>(WaitGuard::given_up));
  }
  if (guard.traps) trap();
  return true;
}
#endif

}  // namespace detail
}  // namespace tranship
