#include "tranship/run/exchange_explanation.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

bool any_is(const ExplainedExchange& exchange, const char* way) {
  const auto is = [&](const Message& m) { return std::string_view(way_of(m)) == way; };
  return std::any_of(exchange.receives.begin(), exchange.receives.end(), is) ||
         std::any_of(exchange.sends.begin(), exchange.sends.end(), is);
}

std::string schedule_line(const ExplainedExchange& exchange) {
  struct Way {
    const char* name;
    const char* what;
  };
  constexpr Way ways[] = {{"direct", "straight from array to array, by the target, or by a source that waits for it"},
                          {"staged", "packed by the sender, unpacked by the receiver"},
                          {"posted", "packed, put with a signal, and unpacked: the peer is only messaged"}};
  std::string names;
  const Way* only = nullptr;
  for (const Way& way : ways) {
    if (!any_is(exchange, way.name)) continue;
    only = names.empty() ? &way : nullptr;
    names += (names.empty() ? "" : " and ") + std::string(way.name);
  }
  if (names.empty()) only = &ways[0];
  return only ? fmt::format("schedule: {} ({})\n", only->name, only->what)
              : fmt::format("schedule: {}, by message\n", names);
}

std::string line_of(const std::string& what, const MoveBundle& moves) {
  const MoveList::Summary m = moves.summary();
  return fmt::format("{}: {} in {}, {}, contiguous runs of {} and more, {} on average\n", what,
                     amount(moves.bytes(), "byte"), amount(m.moves, "move"), amount(m.walks, "walk"),
                     amount(m.run_bytes_min, "byte"), m.run_bytes_mean);
}

}  // namespace

std::string explain(const ExplainedExchange& exchange) {
  std::string out = schedule_line(exchange);
  for (const Measured& m : exchange.measured)
    out += fmt::format("measured: {} {:.1f} us\n", name_of(m.schedule), double(m.ns) / 1e3);
  if (exchange.sources == Sources::snapshot)
    out += "sources: packed by start(); cells may be written before finish(), which writes the targets\n";
  else if (exchange.asked == Schedule::automatic)
    out += automatic_rule();
  for (const Message& m : exchange.receives)
    out += line_of(fmt::format("from rank {}, {}", m.peer, way_of(m)), m.moves);
  for (const Message& m : exchange.sends) out += line_of(fmt::format("to rank {}, {}", m.peer, way_of(m)), m.moves);
  out += line_of("within this rank", exchange.own.moves);
  out += fmt::format("stores: {} ({} reach all ranks together, caches hold less than {})\n",
                     name_of(exchange.way.stores), amount(exchange.traffic_bytes, "byte"), large_traffic_min());
  out += exchange.sources == Sources::snapshot
             ? "progress: start() of the sender, then test() or finish() of the receiver\n"
             : "progress: in start(), test() and finish() of either side; nothing moves while both compute\n";
  if (any_is(exchange, "posted") && !exchange.progress.empty()) out += fmt::format("messages: {}\n", exchange.progress);
  return out;
}

}  // namespace tranship
