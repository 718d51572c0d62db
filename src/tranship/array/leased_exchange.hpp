// Private: LeasedExchange, an exchange between arrays that may have copies on devices. While a run is in flight, leases
// are open on exactly the cells that it touches, so no other lease can change them.
#pragma once

#include <deque>
#include <list>
#include <string>
#include <vector>

#include <tranship/array/ghosts/in_flight.hpp>
#include <tranship/array/ghosts/touched_cells.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/run/exchange.hpp>
#include <tranship/run/exchange_observer.hpp>

namespace tranship {

class Coherence;

/// An array of a slot and its name in messages.
struct LeasedArray {
  Coherence* array = nullptr;
  std::string name = {};
};

/// Returns the arrays on the host, by slot.
std::vector<std::vector<ExchangeArray>> exchanged(const std::vector<std::vector<LeasedArray>>& slots);

/// Opens leases before an exchange starts, and closes them when it is complete. An array without a lease lives on the
/// host alone and costs nothing more. If its first lease is opened while the exchange is in flight, the buffer that is
/// then made has the leases of the exchange before any other.
class ExchangeLeases : public ExchangeObserver {
 public:
  /// `slots` lists the arrays of each slot of the plan. `slots` and the plan must outlive this object.
  ExchangeLeases(const std::vector<std::vector<LeasedArray>>& slots, const TransferPlan& plan);

  /// Returns true when devices may hold cells that are sent.
  bool start_may_wait() const noexcept override;
  /// Waits for devices that hold sources. Throws `invalid_use` when a lease is open on a cell that the exchange
  /// touches.
  void starting(CallSite where) override;
  void not_started() noexcept override;
  void completed(CallSite where) override;
  /// Invalidates, in arrays with leases, the cells that were in flight.
  void withdrawn() noexcept override;

 private:
  /// An array, and the leases that the exchange holds on it.
  class Member final : public InFlight {
   public:
    Member(ExchangeLeases& of, Coherence& of_array, std::size_t of_slot)
        : array(of_array), slot(of_slot), exchange_(of) {}

    const TouchedCells& cells() override;
    std::vector<Lease> leases_in(Buffer& buffer) override;
    void keep(std::vector<Lease> opened) noexcept override { leases = std::move(opened); }

    void begin() noexcept;
    void end() noexcept;

    Coherence& array;
    const std::size_t slot;
    std::vector<Lease> leases;

   private:
    ExchangeLeases& exchange_;
    std::list<InFlight*> place_{this};  // this member, while it is not in the list of the array
  };

  void open_all();
  void open(std::vector<Lease>& out, Buffer& buffer, const Region& region, Intent intent, const void* host) const;
  void end_all() noexcept;
  /// Invalidates cells that may have arrived in part, so that no lease can read them.
  void invalidate(Coherence& array, const Region& region) const noexcept;

  const TransferPlan& plan_;
  std::deque<Member> members_;         // a deque: members never move
  std::vector<TouchedCells> touched_;  // by slot; filled when an array first has a buffer
  CallSite since_{"", 0};
};

class LeasedExchange : public ExchangeCalls {
 public:
  LeasedExchange(World& world, TransferPlan plan, const std::vector<std::vector<LeasedArray>>& slots,
                 ExchangeOptions options = {}, CallSite where = CallSite::here());
};

}  // namespace tranship
