// Board: what every rank of a world is doing, so that a wait that fails can say who holds it up.
//
// Each rank writes its own slot; any rank reads all. A slot is a seqlock of atomics with text copied in: no lock, no
// pointer, no allocation, so it also works in memory that processes share and survives the death of its writer.
// Invariant: the first failure is set once, after its text is written, and never changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tranship/base/index.hpp>
#include <tranship/fabric/wait_note.hpp>

namespace tranship {

class Board {
 public:
  explicit Board(int ranks);
  ~Board();

  int ranks() const noexcept { return ranks_; }

  /// The rank waits as `note` says since `since_ns`. Only the rank itself may call this; so for the next three.
  void post_wait(Rank rank, const WaitNote& note, std::int64_t since_ns) noexcept;
  void post_running(Rank rank) noexcept;
  /// The rank's function has returned: it will raise nothing more. Release: what it raised before is seen by whoever
  /// sees that it has finished.
  void post_finished(Rank rank) noexcept;
  /// The rank's function has thrown. Keeps the first 1007 bytes of `message`.
  void post_failed(Rank rank, std::string_view message) noexcept;

  /// Acquire.
  bool finished(Rank rank) const noexcept;
  /// The rank that failed first, or -1. Acquire.
  Rank first_failed() const noexcept { return first_failed_.load(std::memory_order_acquire); }
  std::string failure_of(Rank rank) const;

  /// What a rank does now: "running", "finished", "failed: ...", "waiting for barrier (rank 1, flag 0 >= 3, sees 2) for
  /// 0.05 s".
  std::string line(Rank rank) const;

 private:
  struct Slot;

  int ranks_;
  std::unique_ptr<Slot[]> slots_;
  std::atomic<Rank> first_failed_ = -1;
};

}  // namespace tranship
