#include <algorithm>

#include <tranship/array/array_plan.hpp>
#include <tranship/array/interface_exchange.hpp>
#include <tranship/array/located.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/interfaces.hpp>

namespace tranship {
namespace {

/// One slot for all arrays of one layout.
ArrayPlan plan_of(const std::vector<ArrayRef>& arrays) {
  const Rank rank = common_world(arrays).rank();
  ArrayPlan out;
  std::vector<ArraySpec> kinds;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto known = std::find(kinds.begin(), kinds.end(), *arrays[i].spec);
    const auto slot = std::size_t(known - kinds.begin());
    if (known == kinds.end()) {
      kinds.push_back(*arrays[i].spec);
      out.slots.push_back({{ChangeKind::changed}, {}});
    }
    out.slots[slot].arrays.push_back({arrays[i], fmt::format("array {}", i)});
  }
  out.plan = plan_interfaces(kinds, rank);
  return out;
}

}  // namespace

InterfaceExchange::InterfaceExchange(const std::vector<ArrayRef>& arrays, ExchangeOptions options, CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(arrays); }), options, where) {}

}  // namespace tranship
