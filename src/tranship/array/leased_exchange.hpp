// LeasedExchange: an exchange between arrays that may have copies on devices. While it is in flight it holds leases on
// exactly the cells that it touches, so that nobody else does.
#pragma once

#include <memory>
#include <vector>

#include <tranship/array/touched_cells.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

class Coherence;

/// Moves on the host. Arrays of which nobody has taken a lease yet live on the host alone and cost nothing more.
class LeasedExchange {
 public:
  /// As Exchange; `arrays` stand for the slots of the plan, and must outlive this.
  LeasedExchange(World& world, TransferPlan plan, std::vector<Coherence*> arrays, ExchangeOptions options = {});
  /// As Exchange's. What was in flight to arrays with leases is invalid there.
  ~LeasedExchange();
  LeasedExchange(LeasedExchange&&) noexcept;
  LeasedExchange& operator=(LeasedExchange&&) = delete;

  /// As Exchange's. Throws `invalid_use` when a lease is open on a cell that it touches; waits for devices that hold
  /// what it sends.
  void start(CallSite where = CallSite::here());
  bool test();
  void finish();
  void operator()(CallSite where = CallSite::here()) {
    start(where);
    finish();
  }

  Schedule schedule() const noexcept { return exchange_->schedule(); }
  const TransferPlan& plan() const noexcept { return exchange_->plan(); }
  std::string explain() const { return exchange_->explain(); }

 private:
  /// Nobody may read what may be half there.
  void invalidate(std::size_t array, const Region& region) noexcept;

  std::vector<Coherence*> arrays_;
  std::vector<TouchedCells> touched_;
  std::vector<Lease> leases_;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace tranship
