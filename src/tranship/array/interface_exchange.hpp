// InterfaceExchange: makes staggered points agree that several parts share.
#pragma once

#include <vector>

#include <tranship/array/array_exchange.hpp>

namespace tranship {

/// Neighbouring parts of an array that counts interfaces both store the points between them as their own, and compute
/// them apart. This gives each of them the value of its owner, the upper part (plan_interfaces). Halos never do that:
/// run one afterwards where the overlap must know.
class InterfaceExchange : public ArrayExchange {
 public:
  /// Collective over the world of the arrays, which must be one: one message per pair of ranks for all of them. Throws
  /// as plan_interfaces and Exchange do, and `invalid_use` for a const array.
  explicit InterfaceExchange(const std::vector<ArrayRef>& arrays, ExchangeOptions options = {},
                             CallSite where = CallSite::here());
};

}  // namespace tranship
