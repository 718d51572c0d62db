// Detail: ArrayExchange, the calls that Redistribution, HaloExchange and InterfaceExchange have in common.
#pragma once

#include <memory>
#include <string>

#include <tranship/base/call_site.hpp>
#include <tranship/plan/transfer_plan.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

struct ArrayPlan;

/// Keeps the arrays that it moves, so their memory outlives it. Moves, does not copy; what has been moved from can only
/// be destroyed. Used by the thread of its rank.
class ArrayExchange {
 public:
  /// Not collective and never waits. Withdraws an exchange that is in flight: afterwards no peer touches the memory of
  /// the arrays. What had arrived stays; peers that still wait for this rank fail with `peer_lost`; cells on devices
  /// that were to be written are invalid until they are written again.
  ~ArrayExchange();
  ArrayExchange(ArrayExchange&&) noexcept;
  ArrayExchange& operator=(ArrayExchange&&) = delete;

  /// Publishes that this rank's sources are final and its targets may be overwritten, and moves what the peers are
  /// ready for. Every rank calls it once per exchange; it does not wait for the peers, with two exceptions: where
  /// leases have been opened on an array, it waits until the device that holds boundary cells has copied them to the
  /// host; and where leases have accumulated in ghosts of a source, it is collective, because the owners get these
  /// values first. Until finish() returns, or test() returns true, the sources must not be written and the targets not
  /// be touched, unless the exchange was made with Sources::snapshot. Leases of cells that it moves are refused in any
  /// case.
  ///
  /// Allocates nothing where no array has had a lease. Throws `invalid_use` while an exchange is in flight, and when an
  /// open lease covers a cell that it moves; `device_lost`; `peer_lost` and `timeout` where it waits.
  void start(CallSite where = CallSite::here());
  /// False where start() waits for nothing: no array has had a lease until now.
  bool start_may_wait() const noexcept;
  /// Moves what has become possible and returns at once: true when everything has arrived, and all that peers read from
  /// here has been read; also when nothing is in flight. Throws `peer_lost` when a peer has left or failed, and
  /// `timeout` when a loop over test() has seen nothing new for the world's timeout.
  bool test(CallSite where = CallSite::here());
  /// Waits for that, until the world's timeout at the latest, and moves what it can meanwhile. Returns at once when
  /// nothing is in flight. Throws `timeout` or `peer_lost`, whose messages say who waits for whom; the world can only
  /// be left then.
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
  /// How this rank moves what: messages, bytes, lengths of runs. The first line names the schedule. Not collective.
  std::string explain() const;

 protected:
  ArrayExchange(ArrayPlan plan, ExchangeOptions options, CallSite where);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
