// Private: the text of Exchange::explain().
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <tranship/run/exchange_message.hpp>
#include <tranship/run/exchange_schedule.hpp>

namespace tranship {

struct ExplainedExchange {
  Schedule asked{};  ///< by the caller, or chosen by measuring
  Sources sources{};
  std::span<const Measured> measured;
  std::span<const Message> receives, sends;
  const Message& own;
  CopyMethod way;
  Index traffic_bytes = 0;         ///< bytes that reach all ranks together
  std::string_view progress = {};  ///< World::progress()
};

/// One line per message, and the decisions for all of them.
std::string explain(const ExplainedExchange& exchange);

}  // namespace tranship
