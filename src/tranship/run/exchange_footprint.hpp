// Private: ExchangeFootprint, which memory of its rank a run of an exchange reads and writes, by cells.
#pragma once

#include <string>
#include <vector>

#include <tranship/fabric/memory_use.hpp>
#include <tranship/run/exchange_messages.hpp>

namespace tranship {

/// Cells of this rank. Stretches of a list that are touched alike neither overlap nor continue each other.
struct ExchangeFootprint {
  using Parts = std::vector<detail::MemoryUse::Part>;
  std::vector<std::string> names;  ///< of the arrays, to which parts point
  Parts sends;                     ///< cells that are sent, to this rank itself, too
  Parts receives;                  ///< cells that are received or filled, and those that fills read
};

/// Of the arrays as they are bound now.
ExchangeFootprint footprint_of(const ExchangeTerms& terms, const ExchangeMessages& messages);

}  // namespace tranship
