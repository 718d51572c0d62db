// Private: AccessLog, the loads and stores that the code of a simulated rank has made since the race detector was last
// told of them. Instrumented code (sim/hooks/) notes each of them, so the path that is taken most costs a few
// nanoseconds: it looks whether the detector may want to know, and whether the log has it already.
//
// Between two calls of a rank nothing changes that the detector knows of it, and no other rank runs. Accesses of that
// time may therefore be told together, in any order: settle() does so before each call.
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
  /// An atomic access, and what its memory order gives.
  struct Atomic {
    enum class Does : std::uint8_t { load, store, update } does{};
    bool acquires = false, releases = false;
  };

  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  /// At most 16 bytes, of one line where they have a natural place. `code` is the address behind the call of the hook.
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

  /// Tells the detector what has been noted. What it finds is kept until the rank's next call can throw it.
  virtual void settle() noexcept = 0;

  /// While a call of the library runs, instrumented code that it shares with the program notes nothing.
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
  /// Puts into `others_` the other memory that the detector wants to know of: sorted, no two touch.
  virtual void find_others() noexcept = 0;

  struct Stretch {
    Address first = 0, end = 0;
  };
  std::vector<Stretch> others_;

  bool is_empty() const noexcept { return runs_count_ == 0 && open_ == 0; }
  /// Calls f(run) for all that has been noted, and forgets it.
  template <class F>
  void take(F&& f) {
    for (std::size_t i = 0; i < runs_count_; ++i) f(runs_[i]);
    runs_count_ = 0;
    for (; open_ != 0; open_ &= open_ - 1) f(open_runs_[std::size_t(__builtin_ctzll(open_))]);
  }
  /// What the detector knows may be different from now on.
  void begin_period() noexcept {
    period_ += period_step;
    if (period_ == 0) {  // all numbers have been taken
      lines_.fill({});
      period_ = period_step;
    }
    others_first_ = 0;  // so that the next look finds them anew
    others_end_ = UINTPTR_MAX;
    others_are_known_ = false;
  }

 private:
  static constexpr Address line_bytes = 64;
  static constexpr std::size_t open_count = 64, runs_max = 1024;
  /// Bytes of memory that have been noted in a period, of which each has an own number in the upper bits of tags.
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
  /// The bytes from `first` on in its line.
  static std::uint64_t mask_of(Address first, std::size_t bytes) noexcept {
    return ((std::uint64_t(1) << bytes) - 1) << first % line_bytes;
  }
  [[gnu::noinline]] void note_new(Address first, std::size_t bytes, Does does, const void* code) noexcept {
    if (in_library_ > 0) return;
    const bool is_told = is_wanted(first, bytes);
    // What is not wanted is not looked at again in this period either.
    if (first % line_bytes + bytes <= line_bytes) {
      Line& line = line_of(first);
      if (line.tag != tag_of(first)) line = {.tag = tag_of(first)};
      // A store conflicts with all that a load conflicts with.
      line.seen |= mask_of(first, bytes);
      if (does == Does::store) line.stored |= mask_of(first, bytes);
    }
    if (is_told) extend(first, first + bytes, does, code);
  }
  /// Loops go on where they were, so an access lengthens the last run of its instruction. Instructions whose addresses
  /// fall together share two places, which hold two of them.
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
  std::uint64_t open_ = 0;  // a bit for each open run
  std::size_t next_of_two_ = 0;
  std::array<Run, open_count> open_runs_;
  std::size_t runs_count_ = 0;
  std::array<Run, runs_max> runs_;
};

namespace detail {

/// That of the simulated rank that runs on this thread; nullptr elsewhere.
extern constinit thread_local AccessLog* access_log [[gnu::tls_model("initial-exec")]];

/// Whether hooks are part of this process, and what makes their answers wrong; nullptr where nothing does. They say so
/// before main().
struct RaceHooks {
  bool are_there = false;
  const char* obstacle = nullptr;
};
extern constinit RaceHooks race_hooks;

/// Before the detector is asked or told something.
inline void settle_accesses() noexcept {
  if (access_log != nullptr) access_log->settle();
}

/// A call of the library that touches memory of ranks.
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
