// Private: Simulation: the scheduler of simulated ranks, and the log of the transfers in flight between them.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <tranship/base/random.hpp>
#include <tranship/fabric/hosts/mail.hpp>
#include <tranship/fabric/lanes/fiber.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/shared/shared_world.hpp>
#include <tranship/fabric/sim/host_memory.hpp>
#include <tranship/fabric/sim/race_detector.hpp>
#include <tranship/fabric/sim/rank_log.hpp>
#include <tranship/fabric/sim/simulate.hpp>

namespace tranship {

/// Thrown in a rank that dies. It is no std::exception, so programs do not take it for an error of their own.
struct RankDies {};

/// An entry of the log: one piece of a transfer, an update or a signal.
struct InFlight {
  enum class Kind : std::uint8_t { put, get, update, signal } kind{};
  Rank rank = 0;  ///< the sender
  int context = 0;
  Rank target = 0;
  std::uint64_t serial = 0;
  std::uint64_t fences = 0;  ///< fences of its context before it
  bool is_fenced = true;     ///< these fences hold it back; not if it only reads
  /// The signal comes after the pieces with serials [after_first, after_end).
  std::uint64_t after_first = 0, after_end = 0;

  CopyBlock block;
  int width = 1;
  std::vector<std::byte> payload;  ///< dense; if empty, `source` is read at delivery
  const void* source = nullptr;
  void* local_target = nullptr;
  std::size_t offset_bytes = 0;

  AtomicOp op{};
  std::uint64_t operand = 0, compare = 0;
  void* before = nullptr;

  std::shared_ptr<Told> tells;
  std::vector<RaceDetector::Bytes> written;
};

/// Returns true if an atomic on a word with the value `before` writes it.
bool writes(AtomicOp op, int width, std::uint64_t compare, const void* before);

/// Posts of ranks reach the boards of other machines late, through the log.
class Simulation final : private BoardLink {
 public:
  Simulation(const SimulationOptions& options, std::shared_ptr<SharedWorld> shared);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  SimulationReport run(FunctionRef<void(World&)> body);
  /// Returns the exception that a failed rank has thrown.
  const std::exception_ptr& thrown_by(Rank rank) const noexcept { return ranks_[std::size_t(rank)].thrown; }

  // Calls of the running rank.
  /// Lets other ranks run first, perhaps. Throws RankDies, as wait() does.
  void step(Rank rank);
  /// A step after a value has arrived. Ranks may look until they see a wanted value, so after a number of looks others
  /// run and transfers in flight are delivered, whatever the probabilities of this seed.
  void look(Rank rank);
  /// Called before a fetch from `offset_bytes` of the heap of `peer`: a rank that walks through memory does not look in
  /// vain.
  void looks_at(Rank rank, Rank peer, std::size_t offset_bytes);
  /// Continues when something has happened. `round` counts from 0 within one wait.
  void wait(Rank rank, int round);
  /// Continues when something has happened, or nothing more can.
  void poll(Rank rank, std::int64_t polls);
  /// Calls apply_atomic(); an atomic that changes nothing counts as a look.
  void apply_atomic_noting(void* at, int width, AtomicOp op, const void* operand, const void* expected, void* before);
  bool passed(Rank rank, Deadline deadline);
  /// Throws an error of a rank that could not be thrown where it occurred, at its next call and at every further one: a
  /// changed source of a transfer whose end it has learnt, a race of accesses that hooks have noted, or one of a
  /// release.
  void fail_late(Rank rank) const;

  void send(Rank source, InFlight what);
  /// deliver_one_of() delivers one deliverable piece that this rank has sent in a context, or returns false;
  /// deliver_fenced() delivers all pieces to a target that have fewer fences; forget() drops pieces that still need
  /// memory of this rank.
  bool deliver_one_of(Rank source, int context, std::optional<Rank> target);
  void deliver_fenced(Rank source, int context, Rank target, std::uint64_t fences);
  void forget(Rank source, int context) noexcept;
  std::uint64_t next_serial() noexcept { return ++serials_; }
  int next_context() noexcept { return ++contexts_; }

  std::byte* heap_of(Rank rank) const noexcept;
  /// The board of the rank's machine.
  Board& board_of(Rank rank) const noexcept {
    return boards_.empty() ? shared_->board() : *boards_[std::size_t(rank / options_.ranks_per_host)];
  }
  /// Returns the first failed rank of all machines, or -1.
  Rank first_failed() const noexcept { return boards_.empty() ? shared_->board().first_failed() : first_failed_; }
  /// The ranks of one machine.
  Members host_of(Rank rank) const noexcept;
  /// The ranks whose memory this one loads and stores, itself included.
  Members sharing(Rank rank) const noexcept;
  /// Returns an address of the rank's memory that is open whichever rank runs.
  template <class T>
  T* open(T* own) const noexcept {
    return host_memory_ ? host_memory_->open(own) : own;
  }
  /// nullptr if all ranks are on one machine.
  HostMemory* host_memory() const noexcept { return host_memory_.get(); }
  /// Returns the place of a rank's address: in a symmetric heap, also for own memory that is joined to the heap, or in
  /// own memory.
  RaceDetector::Bytes bytes_at(Rank rank, const void* first, std::size_t size_bytes) const;
  /// Calls f(first, end) for the addresses of a rank's own memory that is joined to its heap.
  template <class F>
  void for_each_joined(Rank rank, F&& f) const {
    for (const Joined& one : joined_)
      if (one.rank == rank && !one.memory.expired()) f(one.first, one.first + one.size_bytes);
  }
  void join(Rank rank, const std::shared_ptr<void>& memory, std::size_t size_bytes, std::size_t offset_bytes) {
    joined_.push_back({rank, memory, reinterpret_cast<std::uintptr_t>(memory.get()), size_bytes, offset_bytes});
  }
  /// By rank: the number of the group of ranks that share memory with it.
  const std::vector<int>& sharing_of() const noexcept { return sharing_of_; }
  /// Letters of meetings.
  void bring(Rank from, Rank to, Mail::Key meeting, std::span<const std::byte> bytes);
  std::optional<std::vector<std::byte>> take(Rank to, Rank from, Mail::Key meeting);
  /// Counts a message of `bytes` bytes and a head; a rank sends none to itself and to ranks whose memory it reaches.
  void count_message(Rank from, Rank to, std::size_t bytes) noexcept;
  const SimulationOptions& options() const noexcept { return options_; }
  SplitMix64& random() noexcept { return random_; }
  /// Returns nullptr if order is not checked. All accesses of the running rank have been reported to it.
  RaceDetector* race_detector() noexcept {
    detail::settle_accesses();
    return race_detector_.get();
  }
  /// Returns nullptr also while a use of its memory covers the rank's accesses.
  RaceDetector* race_detector_for(Rank rank) noexcept {
    RaceDetector* const detector = race_detector();
    return ranks_[std::size_t(rank)].is_covered ? nullptr : detector;
  }
  bool set_covered(Rank rank, bool is) noexcept { return std::exchange(ranks_[std::size_t(rank)].is_covered, is); }
  const std::shared_ptr<RaceDetector>& shared_race_detector() const noexcept { return race_detector_; }
  /// A member of a team enters a meeting, and leaves it; it then knows everything that any member knew when it entered.
  void come(Rank rank, int slot, const Members& members, std::uint64_t meeting);
  void go(Rank rank, int slot, const Members& members, std::uint64_t meeting);

 private:
  struct RankState {
    std::unique_ptr<Fiber> fiber;
    std::exception_ptr thrown;
    std::deque<std::unique_ptr<const InFlight>> log;
    std::vector<std::size_t> deliverable;  ///< indices in the log, in order; stale if `is_log_new`
    bool is_log_new = false;
    std::int64_t steps = 0;
    std::int64_t messages_sent = 0, bytes_sent = 0;
    Deadline deadline = Deadline::never();
    bool is_covered = false;
    std::set<std::pair<Rank, std::size_t>> places;  // places that it has looked at
    bool waits = false;
    bool has_news = false;  ///< something has happened since it last began to look
    bool is_drowsy = true;  ///< it is in the list of ranks to wake
    bool polls = false;
    bool acted = false;  ///< since it has polled
    bool expired = false;
    bool dying = false;
  };

  void watch_order();
  void throw_noted_race(Rank rank) const;
  void count_step(Rank rank);
  /// Memory of some rank has changed, or may have: a wait that has not looked since then does not expire.
  void changed() noexcept {
    vain_looks_ = 0;
    for (const Rank rank : expired_) {
      ranks_[std::size_t(rank)].expired = false;
      update_held(rank);
    }
    expired_.clear();
  }
  /// One of the rank's flags may have changed.
  void update_held(Rank rank) noexcept {
    const RankState& one = ranks_[std::size_t(rank)];
    is_held_[std::size_t(rank)] = one.fiber->ended() || ((one.waits || one.polls) && !one.expired);
  }
  void note_drowsy(Rank rank) {
    if (!std::exchange(ranks_[std::size_t(rank)].is_drowsy, true)) drowsy_.push_back(rank);
  }
  /// Returns the pieces that no earlier one holds back, in the order in which they were sent.
  const std::vector<std::size_t>& deliverable(Rank rank);
  void deliver(Rank source, std::size_t index);
  /// `there` is the place that it is about to write.
  void tell(const InFlight& what, const void* there);
  bool deliver_any();
  void something_happened();
  void wake_all();
  /// Wakes one rank. Others may learn of the event later, but do learn of it.
  void wake(Rank rank);
  bool wake_those_not_told();
  void tell(Rank rank) noexcept override;
  void ask(Rank rank) noexcept override;
  void tell_at_end(Rank) noexcept override {}  // ranks of all machines belong to one process, which ends
  bool has_heard_end(Rank) const noexcept override { return true; }  // a rank's messages are here before it ends
  bool deliver_news();
  void resume(Rank rank);
  bool resume_polls();
  bool look_again();
  bool expire_one();

  SimulationOptions options_;
  std::shared_ptr<SharedWorld> shared_;
  SplitMix64 random_;
  std::vector<RankState> ranks_;
  // These lists make an event cost less than a look at all ranks.
  std::vector<std::uint8_t> is_held_;  // by rank: it cannot run
  std::vector<Rank> drowsy_;           // ranks that wait, poll, or have no news
  bool some_are_not_told_ = false;
  std::vector<Rank> expired_;  // ranks that may have expired
  std::shared_ptr<RaceDetector> race_detector_;
  std::vector<std::unique_ptr<RankLog>> logs_;  // by rank; empty without order checks or hooks
  std::shared_ptr<HostMemory> host_memory_;
  std::vector<std::unique_ptr<Board>> boards_;  // by machine, if there are several
  struct News {
    Rank of;
    Board* to;
    Board::Entry entry;
  };
  std::vector<News> news_;  // in flight
  std::vector<int> sharing_of_;
  std::map<std::tuple<Rank, Rank, int, std::uint64_t>, std::vector<std::byte>> letters_;  // by target and source
  Rank first_failed_ = -1;
  Rank running_ = 0;
  /// Memory of a rank that is also a part of its heap, while it is held.
  struct Joined {
    Rank rank;
    std::weak_ptr<void> memory;
    std::uintptr_t first;
    std::size_t size_bytes, offset_bytes;
  };
  std::vector<Joined> joined_;
  struct MeetingState {
    Times known;
    int gone = 0;
  };
  std::map<std::tuple<int, Rank, std::uint64_t>, MeetingState> meetings_;
  int delivery_chance_;          // of 16: a delivery comes before a step of a rank
  int switch_chance_;            // of 16: a step lets other ranks run
  int looks_again_ = 0;          // of all ranks that sleep, since anything has happened
  int looks_ = 0;                // since the last delivery for looks
  std::int64_t vain_looks_ = 0;  // of all ranks, since anything has changed
  std::uint64_t serials_ = 0;
  int contexts_ = 0;
  SimulationReport own_report_;
  SimulationReport& report_;
};

}  // namespace tranship
