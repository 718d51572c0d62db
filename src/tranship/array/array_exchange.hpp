// What runs a plan between whole arrays: keeps them, and tells them what it has changed.
#pragma once

#include <string>
#include <vector>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/array/leased_exchange.hpp>
#include <tranship/array/local_array.hpp>

namespace tranship {

/// An array that an exchange moves, and what messages call it.
struct NamedArray {
  ArrayRef array;
  std::string name;
};

/// The arrays that a slot of a plan stands for, and what the plan does to them.
struct ArraySlot {
  ArrayChange change;
  std::vector<NamedArray> arrays;
};
struct ArrayPlan {
  TransferPlan plan;
  std::vector<ArraySlot> slots;
};

/// A first base of what runs exchanges: as bases go in reverse order, the memory outlives the exchange.
struct KeptArrays {
  std::vector<ArraySlot> kept;
};

class ArrayExchange : private KeptArrays, public LeasedExchange {
 public:
  /// Collective. As Exchange, and throws `invalid_use` for a const array that the plan writes.
  ArrayExchange(ArrayPlan plan, ExchangeOptions options, CallSite where);

  /// As LeasedExchange's, and collective as far as ghosts of a source must first be given to their owners.
  void start(CallSite where = CallSite::here());
  void operator()(CallSite where = CallSite::here()) {
    start(where);
    finish(where);
  }
};

}  // namespace tranship
