// Private: ExchangeFootprint, the memory of its rank that a run of an exchange reads and writes, by cells.
#pragma once

#include <string>
#include <vector>

#include <tranship/fabric/memory_use.hpp>
#include <tranship/run/exchange_messages.hpp>

namespace tranship {

/// Cells of this rank. Stretches of a list with the same kind of access neither overlap nor adjoin.
struct ExchangeFootprint {
  using Parts = std::vector<detail::MemoryUse::Part>;
  std::vector<std::string> names;  ///< of the arrays; parts point to them
  Parts sends;                     ///< cells that are sent, also to this rank itself
  Parts receives;                  ///< cells that are received or filled, and cells that fills read
};

/// Uses the arrays that are bound now.
ExchangeFootprint footprint_of(const ExchangeTerms& terms, const ExchangeMessages& messages);

}  // namespace tranship
