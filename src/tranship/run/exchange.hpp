// Detail: Exchange runs a plan, as often as its user likes, and ExchangeCalls is what all kinds of exchanges have in
// common. A schedule decides how each message travels.
//
// No schedule changes a result: every cell of a target gets the same bytes, sums in the same order. Reuse allocates
// nothing.
//
//   start()   publishes that this rank is ready and takes what ready peers have for it (Halves::apart: and copies for
//             them what they do not wait for); never waits
//   test()    moves what has become possible; true when everything has arrived and been read
//   finish()  waits for that, and copies for peers that are ready and do not come
//
// An exchange in flight moves on in every wait of the rank, whatever it waits for, and in loops that poll. Ranks may
// therefore start several exchanges and finish them in different orders.
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

/// Where transfers take their time (peers that are only messaged, simulated ranks) all messages are posted instead.
enum class Schedule : std::uint8_t {
  automatic,  ///< each message direct or staged, by the lengths of its contiguous runs
  /// Straight from the source's memory to the target's when both have begun: by the target where it is there, for then
  /// its own caches hold it, else by the source that waits for it; where halves are apart, by whichever side waits.
  direct,
  staged,  ///< packed by the sender into a buffer of the receiver, unpacked by the receiver in the order of arrival
  /// The fastest of the others on the arrays given, which the set-up exchanges some times to find out: what the targets
  /// held is overwritten as by any exchange. Where that would change a sum (adjoints), the same as automatic. The
  /// choice is what schedule() then says; giving it to the next Exchange of such a plan repeats it without measuring.
  measured,
};

/// Whether a rank enters an epoch with all that it sends and receives at once, or with each half by itself.
enum class Halves : std::uint8_t { together, apart };

/// When the cells are read that an exchange sends.
enum class Sources : std::uint8_t {
  in_place,  ///< until finish() returns, by peers too: what can go from array to array does
  /// By start() alone, which packs them, while targets are written by finish() alone, or by the test() that returns
  /// true. Between the two the program may write all cells; what it writes into cells that are received is replaced.
  /// All messages are staged, each with two buffers, so that start() still never waits; finish() also waits until the
  /// peers have finished the exchange before. Not for adjoints, Halves::apart and Schedule::direct.
  snapshot,
};

struct ExchangeOptions {
  Schedule schedule = Schedule::automatic;
  Halves halves = Halves::together;     ///< the same on all ranks
  Sources sources = Sources::in_place;  ///< the same on all ranks
};

/// This rank's part of an array that an exchange moves.
struct ExchangeArray {
  StridedView view;
  /// For messages: what the array is called there (else "array" and its number), and how it is laid out.
  std::string name = {};
  std::shared_ptr<const ArraySpec> spec = {};
  /// What the program calls it, for traces.
  std::string label = {};
  /// How its elements are made up, where they are moved as bytes: the same on all ranks. Empty: it is not said.
  std::string record = {};
};

class ExchangeObserver;
class ExchangeRunner;

/// The calls of an exchange, of whatever kind: start(), other work, and test() or finish(). Used by the thread of its
/// rank. Not collective, but every rank starts and finishes equally often. A run sends one message to each peer that
/// shares cells, and allocates nothing. Moves, does not copy; an exchange that has been moved from can only be
/// destroyed.
class ExchangeCalls {
 public:
  /// Not collective and never waits. Withdraws an exchange that is in flight: no peer touches its memory when the
  /// destructor returns. Messages that are complete stay complete for the peers; the others, and runs that start later,
  /// fail for them with `peer_lost`: at once, or where an exception destroys the exchange within a second, in which
  /// they learn the reason if the rank fails with it.
  ~ExchangeCalls();
  ExchangeCalls(ExchangeCalls&&) noexcept;
  ExchangeCalls& operator=(ExchangeCalls&&) = delete;

  /// Publishes that this rank's sources are final and its targets may be overwritten, and moves what the peers are
  /// ready for. Never waits for a peer. Throws `invalid_use` while the exchange is in flight, and where an array has no
  /// memory.
  void start(CallSite where = CallSite::here());
  /// False where start() waits for nothing at all. Exchanges of arrays say when it may wait.
  bool start_may_wait() const noexcept;
  /// Moves what has become possible and returns at once: true when everything has arrived and all that peers read from
  /// here has been read; also when nothing is in flight. Throws `peer_lost` when a peer has left or failed, and
  /// `timeout` when a loop over test() has seen nothing new for the world's timeout.
  bool test(CallSite where = CallSite::here());
  /// Waits for that until the world's timeout, and moves what it can meanwhile. Then this rank's targets are complete,
  /// its sources may be written, and the peers may still be at work. Returns at once when nothing is in flight. Throws
  /// `timeout` or `peer_lost`, whose messages say who waits for whom.
  void finish(CallSite where = CallSite::here());
  /// start() and finish().
  void operator()(CallSite where = CallSite::here()) {
    start(where);
    finish(where);
  }

  /// `direct` or `staged` when all messages of this rank are, `automatic` when it has both.
  Schedule schedule() const noexcept;
  /// This rank's plan.
  const TransferPlan& plan() const noexcept;
  /// How this rank moves what: messages, bytes, moves, lengths of runs. The first line names the schedule.
  std::string explain() const;

 protected:
  ExchangeCalls(World& world, TransferPlan plan, std::vector<std::vector<ExchangeArray>> slots, ExchangeOptions options,
                CallSite where);
  /// Is told of all runs from now on, and destroyed after the exchange has been withdrawn.
  void set_observer(std::unique_ptr<ExchangeObserver> observer);
  /// Throws in a forked child.
  ExchangeRunner& runner() const;

 private:
  friend class Exchange;
  std::unique_ptr<ExchangeObserver> observer_;
  std::shared_ptr<ExchangeRunner> runner_;  // kept while a wait of the rank moves it
};

/// Making it is collective.
class Exchange : public ExchangeCalls {
 public:
  /// Collective over `world`, and waits for all ranks until the world's timeout. `plan` is this rank's, `slots` the
  /// local arrays of its slots (without data where the rank holds nothing, or where bind() says later where it lies).
  /// An array that is written shares memory with no other one, nor its elements with each other. The memory and the
  /// world must outlive the Exchange. Costs time and memory in proportion to the plan, and the buffers of messages that
  /// are staged or posted.
  ///
  /// Throws, on every rank, `mismatch` when the ranks' plans do not belong together or a view does not fit its slot;
  /// `invalid_use` when a view is wrong in itself or elements cannot be added; `no_memory`. Throws `timeout` or
  /// `peer_lost` when a rank does not come.
  Exchange(World& world, TransferPlan plan, const std::vector<StridedView>& slots, ExchangeOptions options = {},
           CallSite where = CallSite::here());
  /// The same with several arrays of one layout for a slot, on all ranks as many: the first array of a source slot goes
  /// to the first one of the target slot, and so on. Slots between which something moves have as many arrays. Sets up
  /// in about the time of one, where those arrays have the same strides on a rank.
  Exchange(World& world, TransferPlan plan, std::vector<std::vector<ExchangeArray>> slots, ExchangeOptions options = {},
           CallSite where = CallSite::here());

  /// From here on the exchange moves these arrays, one view for each array that it was made with, in their order. They
  /// may lie anywhere and have any strides; elements, extents and the parts of complex numbers stay as they were. Not
  /// collective, and peers need not know. Of an exchange with Sources::snapshot that is not in flight. Costs little
  /// where strides are those of the arrays before; else moves are lowered anew, in about the time of the set-up without
  /// its waits. Throws as the constructor, and then nothing has changed.
  void bind(std::span<const StridedView> arrays);

  /// What is started, tested or finished: of an exchange with Halves::apart also one half alone. The sends are started
  /// when the sources are final, and finished when all has been read; the receives are started when the targets may be
  /// overwritten, and finished when all has arrived. Each half counts its own epochs; what is sent in one epoch is
  /// received in the epoch of the same number. Only redistributions have halves.
  enum class Side : std::uint8_t { both, sends, receives };
  using ExchangeCalls::finish;
  using ExchangeCalls::start;
  using ExchangeCalls::test;
  void start(Side side, CallSite where = CallSite::here());
  bool test(Side side, CallSite where = CallSite::here());
  void finish(Side side, CallSite where = CallSite::here());
  /// This rank takes no more part in what is left, of an exchange with Halves::apart also one half alone. As the
  /// destructor does for all: not collective, withdraws what is in flight, and peers that wait for it fail with
  /// `peer_lost`; so does the other half of this rank, for what goes from the rank to itself. Later calls for what was
  /// left return at once, but for start(), which throws `invalid_use`.
  void leave(Side side);
  /// A call of this side has thrown `peer_lost` because a peer has left or destroyed its exchange, and not because it
  /// has failed. Of receives: before it had started to send what did not come.
  bool peer_has_ended(Side side) const noexcept;
  /// What a simulation calls the exchange and the calls that end a run, where they are not its own.
  struct Words {
    const char* name = "an exchange";  ///< all are literals
    const char* ends_sends = "finish()";
    const char* ends_receives = "finish()";
  };
  void set_words(const Words& words);
  /// Moves what has become possible, of whatever is in flight. Never waits, and looks for no deadline or failure. Of
  /// halves: what a peer that waits can copy is left to it, as by start() and test().
  void advance();
};

}  // namespace tranship
