// Private: AccessLog: the loads and stores that the code of a simulated rank has made since they were last reported to
// the race detector. Instrumented code (sim/hooks/) notes each access, so the common path costs a few nanoseconds: it
// only checks whether the detector may want the access, and whether the log has it already.
//
// Between two calls of a rank, nothing that the detector knows of it changes, and no other rank runs. The accesses of
// that time may therefore be reported together, in any order: settle() does so before each call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tranship {

class AccessLog {
 public:
  using Address = std::uintptr_t;
  enum class Does : std::uint8_t { load, store };
  /// An atomic access, and the ordering that its memory order gives.
  struct Atomic {
    enum class Does : std::uint8_t { load, store, update } does{};
    bool acquires = false, releases = false;
  };

  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  /// Notes an access of at most 16 bytes, within one cache line if it is aligned. `code` is the address after the call
  /// of the hook.
  [[gnu::always_inline]] void note(const volatile void* at, std::size_t bytes, Does does, const void* code) noexcept {
    const auto first = reinterpret_cast<Address>(at);
    const Line& line = line_of(first);
    const std::uint64_t mask = mask_of(first, bytes);
    if (line.tag == tag_of(first) && ((does == Does::load ? line.seen : line.stored) & mask) == mask) [[likely]]
      return;
    note_new(first, bytes, does, code);
  }
  void note_range(const volatile void* at, std::size_t bytes, Does does, const void* code) noexcept {
    const auto first = reinterpret_cast<Address>(at);
    if (bytes > 0 && is_wanted(first, bytes)) extend(first, first + bytes, does, code);
  }
  void note_atomic(const volatile void* at, std::size_t bytes, Atomic how, const void* code) noexcept {
    const auto first = reinterpret_cast<Address>(at);
    if (is_wanted(first, bytes)) tell_atomic(first, bytes, how, code);
  }

  /// Reports the noted accesses to the detector. A race that it finds is kept until the rank's next call can throw it.
  virtual void settle() noexcept = 0;

  /// Between these calls a call of the library runs, and instrumented code that it shares with the program notes
  /// nothing.
  void enter_library() noexcept { ++in_library_; }
  void leave_library() noexcept { --in_library_; }

 protected:
  struct Run {
    Address first = 0, end = 0;
    const void* code = nullptr;
    Does does{};
  };

  AccessLog(Address heaps, std::size_t heaps_bytes) : heaps_(heaps), heaps_bytes_(heaps_bytes) {}
  ~AccessLog() = default;

  virtual void tell_atomic(Address first, std::size_t bytes, Atomic how, const void* code) noexcept = 0;
  /// Fills `others_` with the other memory that the detector watches, as sorted stretches that do not touch.
  virtual void find_others() noexcept = 0;

  struct Stretch {
    Address first = 0, end = 0;
  };
  std::vector<Stretch> others_;

  bool is_empty() const noexcept { return runs_count_ == 0 && open_ == 0; }
  /// Calls f(run) for all noted accesses, and forgets them.
  template <class F>
  void take(F&& f) {
    for (std::size_t i = 0; i < runs_count_; ++i) f(runs_[i]);
    runs_count_ = 0;
    for (; open_ != 0; open_ &= open_ - 1) f(open_runs_[std::size_t(__builtin_ctzll(open_))]);
  }
  /// Starts a new period: the detector may now watch other memory, and accesses may order differently.
  void begin_period() noexcept {
    period_ += period_step;
    if (period_ == 0) {  // all numbers are used up
      lines_.fill({});
      period_ = period_step;
    }
    others_first_ = 0;  // the next lookup finds them anew
    others_end_ = UINTPTR_MAX;
    others_are_known_ = false;
  }

 private:
  static constexpr Address line_bytes = 64;
  static constexpr std::size_t open_count = 64, runs_max = 1024;
  /// The bytes of a cache line that have been noted in a period. The upper bits of the tag hold the number of the
  /// period.
  struct Line {
    std::uint64_t tag = 0, seen = 0, stored = 0, unused = 0;
  };
  static constexpr std::uint64_t period_step = std::uint64_t(1) << 42;

  bool is_wanted(Address first, std::size_t bytes) noexcept {
    if (in_library_ > 0) return false;
    return first - heaps_ < heaps_bytes_ ||
           (first < others_end_ && first + bytes > others_first_ && is_of_others(first, first + bytes));
  }
  bool is_of_others(Address first, Address end) noexcept;
  Line& line_of(Address at) noexcept { return lines_[at / line_bytes % lines_.size()]; }
  std::uint64_t tag_of(Address at) const noexcept { return at / line_bytes ^ period_; }
  /// Returns the mask of `bytes` bytes from `first` on in their line.
  static std::uint64_t mask_of(Address first, std::size_t bytes) noexcept {
    return ((std::uint64_t(1) << bytes) - 1) << first % line_bytes;
  }
  [[gnu::noinline]] void note_new(Address first, std::size_t bytes, Does does, const void* code) noexcept {
    if (in_library_ > 0) return;
    const bool is_told = is_wanted(first, bytes);
    // An unwanted access is marked, too, so that it is not checked again in this period.
    if (first % line_bytes + bytes <= line_bytes) {
      Line& line = line_of(first);
      if (line.tag != tag_of(first)) line = {.tag = tag_of(first)};
      // A store conflicts with everything that a load conflicts with.
      line.seen |= mask_of(first, bytes);
      if (does == Does::store) line.stored |= mask_of(first, bytes);
    }
    if (is_told) extend(first, first + bytes, does, code);
  }
  /// Appends an access to the last run of its instruction, since loops continue where they were. Instructions whose
  /// addresses have the same hash share two entries, which hold two of their runs.
  void extend(Address first, Address end, Does does, const void* code) noexcept {
    constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15;
    const std::size_t two = reinterpret_cast<Address>(code) * golden_ratio >> 59 << 1;
    for (const std::size_t at : {two, two + 1}) {
      Run& run = open_runs_[at];
      const bool is_open = (open_ >> at & 1) != 0;
      if (!is_open || run.code != code || run.does != does || first > run.end || end < run.first) continue;
      if (first < run.first) run.first = first;
      if (end > run.end) run.end = end;
      return;
    }
    next_of_two_ ^= 1;
    const std::size_t at = two + next_of_two_;
    if ((open_ >> at & 1) != 0) close(open_runs_[at]);
    open_ |= std::uint64_t(1) << at;
    open_runs_[at] = {first, end, code, does};
  }
  void close(const Run& run) noexcept;

  Address heaps_;
  std::size_t heaps_bytes_;
  Address others_first_ = 0, others_end_ = UINTPTR_MAX;
  bool others_are_known_ = false;
  int in_library_ = 0;
  std::uint64_t period_ = period_step;
  std::array<Line, 1024> lines_ = {};
  std::uint64_t open_ = 0;  // one bit per open run
  std::size_t next_of_two_ = 0;
  std::array<Run, open_count> open_runs_;
  std::size_t runs_count_ = 0;
  std::array<Run, runs_max> runs_;
};

namespace detail {

/// The log of the simulated rank that runs on this thread; nullptr on other threads.
extern constinit thread_local AccessLog* access_log [[gnu::tls_model("initial-exec")]];

/// True if hooks are part of this process, and the name of the library that makes them wrong, or nullptr. The hooks set
/// this before main().
struct RaceHooks {
  bool are_there = false;
  const char* obstacle = nullptr;
};
extern constinit RaceHooks race_hooks;

/// Called before the detector is queried or informed.
inline void settle_accesses() noexcept {
  if (access_log != nullptr) access_log->settle();
}

/// Scope of a library call that touches memory of ranks.
class UnloggedCall {
 public:
  UnloggedCall() noexcept : log_(access_log) {
    if (log_ != nullptr) log_->enter_library();
  }
  ~UnloggedCall() {
    if (log_ != nullptr) log_->leave_library();
  }
  UnloggedCall(const UnloggedCall&) = delete;
  UnloggedCall& operator=(const UnloggedCall&) = delete;

 private:
  AccessLog* log_;
};

}  // namespace detail
}  // namespace tranship
