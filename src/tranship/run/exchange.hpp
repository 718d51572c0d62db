// Detail: Exchange runs a plan as often as its user likes; ExchangeCalls has the calls that all kinds of exchanges
// share. A schedule decides how each message travels.
//
// No schedule changes a result: every target cell gets the same bytes, and sums are made in the same order. Reuse
// allocates nothing.
//
//  start()   announces that this rank is ready and takes what ready peers have for it (with Halves::apart, also copies
//            for peers that do not wait); never waits
//  test()    moves what has become possible; returns true when everything has arrived and been read
//  finish()  waits for that, and copies for ready peers that do not copy themselves
//
// An exchange in flight makes progress in every wait of the rank, whatever the rank waits for, and in loops that poll.
// So ranks may start several exchanges and finish them in different orders.
//
// Between start() and finish() the sources must not be written and the targets not be touched, unless start() takes a
// snapshot (Sources::snapshot).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// How messages travel. Messages to peers that are only messaged, or are simulated, are posted whatever the schedule.
enum class Schedule : std::uint8_t {
  automatic,  ///< direct or staged for each message, by the lengths of its contiguous runs
  /// Copied from the source's memory straight to the target's, once both have started. The target copies when it is
  /// there, because the data is then in its caches; otherwise a source that waits for it copies. With Halves::apart,
  /// either side copies while it waits.
  direct,
  staged,  ///< packed by the sender into a buffer of the receiver, which unpacks messages as they arrive
  /// The fastest of the others: the set-up runs the exchange several times on the given arrays to find out, and
  /// overwrites the targets like any exchange. For adjoints, whose sums that would change, and for snapshots it is
  /// `automatic`. schedule() returns the choice; pass it to the next Exchange of such a plan to skip the measurement.
  measured,
};

/// How a rank enters an epoch: with all that it sends and receives at once, or with each half separately.
enum class Halves : std::uint8_t { together, apart };

/// When an exchange reads the cells that it sends.
enum class Sources : std::uint8_t {
  in_place,  ///< until finish() returns, by peers too: data goes from array to array where it can
  /// Only in start(), which packs them. The exchange writes targets only in finish(), or in the test() that returns
  /// true. In between the program may write all cells; what it writes into cells that are received is replaced. No
  /// message is direct, and each has two buffers, so start() still never waits; finish() also waits until the peers
  /// have finished the previous exchange. Not for adjoints, Halves::apart or Schedule::direct.
  snapshot,
};

struct ExchangeOptions {
  Schedule schedule = Schedule::automatic;  ///< must be equal on all ranks
  Halves halves = Halves::together;         ///< must be equal on all ranks
  Sources sources = Sources::in_place;      ///< must be equal on all ranks
};

/// This rank's part of an array that an exchange moves.
struct ExchangeArray {
  StridedView view;
  /// For messages: the array's name ("array" and its number when empty) and its layout.
  std::string name = {};
  std::shared_ptr<const ArraySpec> spec = {};
  /// The program's own name for it, for traces.
  std::string label = {};
  /// How the elements are composed, where they are moved as bytes; must be equal on all ranks. Empty: not stated.
  std::string record = {};
};

class ExchangeObserver;
class ExchangeRunner;

/// The calls of an exchange of any kind: start(), other work, and test() or finish(). For the thread of the rank. Not
/// collective, but every rank must start and finish equally often. A run sends one message to each peer that shares
/// cells, and allocates nothing. Movable, not copyable; an exchange that has been moved from can only be destroyed.
class ExchangeCalls {
 public:
  /// Not collective; never waits. Withdraws an exchange that is in flight: no peer touches its memory after the
  /// destructor returns. For the peers, complete messages stay complete; other messages, and runs that start later,
  /// fail with `peer_lost`: at once, or, when an exception destroys the exchange, after at most five seconds (a quarter
  /// of the world's timeout where that is less), in which the peers may learn why this rank fails.
  ~ExchangeCalls();
  ExchangeCalls(ExchangeCalls&&) noexcept;
  ExchangeCalls& operator=(ExchangeCalls&&) = delete;

  /// Announces that this rank's sources are final and its targets may be overwritten, and moves the messages whose
  /// peers are ready. Never waits for a peer. Throws `invalid_use` while the exchange is in flight, and when an array
  /// has no memory.
  void start(CallSite where = CallSite::here());
  /// Returns false when start() waits for nothing at all. Exchanges of arrays on devices may return true.
  bool start_may_wait() const noexcept;
  /// Moves what has become possible and returns at once. Returns true when everything has arrived and the peers have
  /// read all that they read from here, and when nothing is in flight. Throws `peer_lost` when a peer has left or
  /// failed, and `timeout` when a loop over test() has seen no progress for the world's timeout.
  bool test(CallSite where = CallSite::here());
  /// Waits until test() would return true, up to the world's timeout, and moves what it can meanwhile. Afterwards this
  /// rank's targets are complete and its sources may be written; peers may still be at work. Returns at once when
  /// nothing is in flight. Throws `timeout` or `peer_lost` with a message that says which rank waits for which.
  void finish(CallSite where = CallSite::here());
  /// start() and finish().
  void operator()(CallSite where = CallSite::here()) {
    start(where);
    finish(where);
  }

  /// `direct` or `staged` when all messages of this rank are; `automatic` when it has both.
  Schedule schedule() const noexcept;
  /// This rank's plan.
  const TransferPlan& plan() const noexcept;
  /// Describes how this rank moves its messages: bytes, moves, lengths of runs. The first line names the schedule.
  std::string explain() const;

 protected:
  ExchangeCalls(World& world, TransferPlan plan, std::vector<std::vector<ExchangeArray>> slots, ExchangeOptions options,
                CallSite where);
  /// Sets an observer of all further runs. It is destroyed after the exchange has been withdrawn.
  void set_observer(std::unique_ptr<ExchangeObserver> observer);
  /// Throws in a forked child.
  ExchangeRunner& runner() const;

 private:
  friend class Exchange;
  std::unique_ptr<ExchangeObserver> observer_;
  std::shared_ptr<ExchangeRunner> runner_;  // shared, because a wait of the rank may be moving it
};

/// An exchange of plain memory. Its constructors are collective.
class Exchange : public ExchangeCalls {
 public:
  /// Collective over `world`; waits for all ranks up to the world's timeout. `plan` is this rank's plan. `slots` has
  /// one local array per slot, without data where the rank holds nothing or bind() gives the memory later. An array
  /// that is written must share memory with no other array, and its elements not with each other. The memory and the
  /// world must outlive the Exchange. Time and memory are proportional to the plan, plus the buffers of staged and
  /// posted messages.
  ///
  /// Throws, on every rank, `mismatch` when the ranks' plans do not fit together or a view does not fit its slot;
  /// `invalid_use` when a view is invalid or elements cannot be added; `unsupported` for memory of devices; and
  /// `no_memory`. Throws `timeout` or `peer_lost` when a rank does not come.
  Exchange(World& world, TransferPlan plan, const std::vector<StridedView>& slots, ExchangeOptions options = {},
           CallSite where = CallSite::here());
  /// Sets up an exchange of several arrays of one layout per slot; their number must be equal on all ranks. The first
  /// array of a source slot goes to the first one of the target slot, and so on, so slots between which something moves
  /// need equally many. The set-up takes about the time of one array where the arrays of a slot have equal strides on a
  /// rank.
  Exchange(World& world, TransferPlan plan, std::vector<std::vector<ExchangeArray>> slots, ExchangeOptions options = {},
           CallSite where = CallSite::here());

  /// Moves the exchange to other arrays: one view per array that it was made with, in the same order. Only with
  /// Sources::snapshot, while nothing is in flight. Views may lie anywhere and have any strides; element types, extents
  /// and the placement of complex parts must stay. Not collective, and peers need not know. Cheap when strides stay;
  /// otherwise moves are lowered anew, in about the time of the set-up without its waits. Throws what the constructor
  /// throws, and then nothing has changed.
  void bind(std::span<const StridedView> arrays);

  /// The part of an exchange that a call concerns; single halves only with Halves::apart. Start the sends when the
  /// sources are final; they are finished when the peers have read everything. Start the receives when the targets may
  /// be overwritten; they are finished when everything has arrived. Each half counts its own epochs, and the data sent
  /// in one epoch is received in the epoch of the same number. Only redistributions have halves.
  enum class Side : std::uint8_t { both, sends, receives };
  using ExchangeCalls::finish;
  using ExchangeCalls::start;
  using ExchangeCalls::test;
  void start(Side side, CallSite where = CallSite::here());
  bool test(Side side, CallSite where = CallSite::here());
  void finish(Side side, CallSite where = CallSite::here());
  /// Withdraws one side, or both, for good; a single side only with Halves::apart. Like the destructor, it is not
  /// collective and withdraws what is in flight; peers that wait for it fail with `peer_lost`, and so does this rank's
  /// other half for cells that go from the rank to itself. Later calls for this side return at once, except start(),
  /// which throws `invalid_use`.
  void leave(Side side);
  /// Returns true when a call for this side has thrown `peer_lost` because a peer has left or destroyed its exchange,
  /// and not because it has failed. For receives, only when the peer had not started to send the missing message.
  bool peer_has_ended(Side side) const noexcept;
  /// The names of the exchange, and of the calls that end a run, in the reports of a simulation.
  struct Words {
    const char* name = "an exchange";  ///< all are literals
    const char* ends_sends = "finish()";
    const char* ends_receives = "finish()";
  };
  void set_words(const Words& words);
  /// Moves what has become possible in any run in flight. Never waits, and checks neither deadlines nor failures. With
  /// Halves::apart it leaves to a waiting peer what that peer can copy, like start() and test().
  void advance();
};

}  // namespace tranship
