// What runs a plan between whole arrays: keeps them, and tells them what it has changed.
#pragma once

#include <vector>

#include <tranship/array/leased_exchange.hpp>
#include <tranship/array/local_array.hpp>

namespace tranship {

/// A first base of what runs exchanges: as bases go in reverse order, the memory outlives the exchange.
struct KeptArrays {
  std::vector<ArrayRef> kept;
};

class ArrayExchange : private KeptArrays, public LeasedExchange {
 public:
  /// Collective. As Exchange; the arrays are the plan's slots.
  ArrayExchange(std::vector<ArrayRef> arrays, TransferPlan plan, ExchangeOptions options);

  /// As LeasedExchange's, and collective as far as ghosts of a source must first be given to their owners.
  void start(CallSite where = CallSite::here());
  void operator()(CallSite where = CallSite::here()) {
    start(where);
    finish();
  }
};

}  // namespace tranship
