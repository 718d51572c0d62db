// Private: exchanges between arrays that may have copies on devices. While a run is in flight, leases are open on
// exactly the cells that it touches, so that no other lease is.
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

/// An array of a slot, and its name in messages.
struct LeasedArray {
  Coherence* array = nullptr;
  std::string name = {};
};

/// The host's arrays, by slot.
std::vector<std::vector<ExchangeArray>> exchanged(const std::vector<std::vector<LeasedArray>>& slots);

/// Opens leases before an exchange starts, and closes them when it is complete. Arrays without a lease until now live
/// on the host alone and cost nothing more; the first lease of such an array, while the exchange is in flight, finds
/// the leases of the exchange open.
class ExchangeLeases : public ExchangeObserver {
 public:
  /// `slots` are the arrays of each slot of the plan, and must outlive this, as the plan must.
  ExchangeLeases(const std::vector<std::vector<LeasedArray>>& slots, const TransferPlan& plan);

  /// Devices may hold cells that are sent.
  bool start_may_wait() const noexcept override;
  /// Throws `invalid_use` when a lease is open on a cell that the exchange touches; waits for devices that hold
  /// sources.
  void starting(CallSite where) override;
  void not_started() noexcept override;
  void completed(CallSite where) override;
  /// The cells in flight to arrays with leases are invalid there.
  void withdrawn() noexcept override;

 private:
  /// An array, and the leases that are open on it.
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
    std::list<InFlight*> place_{this};  // where it waits to be in the list of the array
  };

  void open_all();
  void open(std::vector<Lease>& out, Buffer& buffer, const Region& region, Intent intent, const void* host) const;
  void end_all() noexcept;
  /// No lease may read cells that may be half there.
  void invalidate(Coherence& array, const Region& region) const noexcept;

  const TransferPlan& plan_;
  std::deque<Member> members_;         // which stay where they are
  std::vector<TouchedCells> touched_;  // of each slot, once any array has a buffer
  CallSite since_{"", 0};
};

class LeasedExchange : public ExchangeCalls {
 public:
  LeasedExchange(World& world, TransferPlan plan, const std::vector<std::vector<LeasedArray>>& slots,
                 ExchangeOptions options = {}, CallSite where = CallSite::here());
};

}  // namespace tranship
