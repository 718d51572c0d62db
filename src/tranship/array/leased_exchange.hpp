// Private: LeasedExchange, an exchange between arrays that may have copies on devices. While it is in flight it holds
// leases on exactly the cells that it touches, so that no other lease does.
#pragma once

#include <memory>
#include <vector>

#include <tranship/array/ghosts/touched_cells.hpp>
#include <tranship/memory/buffer.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

class Coherence;

/// An array of a slot, and what messages call it.
struct LeasedArray {
  Coherence* array = nullptr;
  std::string name = {};
};

/// Moves on the host. Arrays without a lease until now live on the host alone and cost nothing more.
class LeasedExchange {
 public:
  /// As Exchange; `slots` are the arrays of each slot of the plan, and must outlive this.
  LeasedExchange(World& world, TransferPlan plan, const std::vector<std::vector<LeasedArray>>& slots,
                 ExchangeOptions options = {}, CallSite where = CallSite::here());
  /// As Exchange's. What was in flight to arrays with leases is invalid there.
  ~LeasedExchange();
  LeasedExchange(LeasedExchange&&) noexcept;
  LeasedExchange& operator=(LeasedExchange&&) = delete;

  /// As Exchange's. Throws `invalid_use` when a lease is open on a cell that it touches; waits for devices that hold
  /// what it sends.
  void start(CallSite where = CallSite::here());
  bool test(CallSite where = CallSite::here());
  void finish(CallSite where = CallSite::here());
  void operator()(CallSite where = CallSite::here()) {
    start(where);
    finish(where);
  }

  /// Whether start() may wait: for devices that hold what is sent.
  bool start_may_wait() const noexcept;
  Schedule schedule() const noexcept { return exchange_->schedule(); }
  const TransferPlan& plan() const noexcept { return exchange_->plan(); }
  std::string explain() const { return exchange_->explain(); }

 private:
  struct Member {
    Coherence* array;
    std::size_t slot;
  };
  /// No lease may read what may be half there.
  void invalidate(Coherence& array, const Region& region) const noexcept;

  std::vector<Member> arrays_;
  std::vector<TouchedCells> touched_;  // of each slot, once any array has a buffer
  std::vector<Lease> leases_;
  CallSite since_{"", 0};
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace tranship
