#include <tranship/array/array_exchange.hpp>
#include <tranship/array/coherence.hpp>

namespace tranship {
ArrayExchange::ArrayExchange(std::vector<ArrayRef> arrays, TransferPlan plan, ExchangeOptions options)
    : KeptArrays{std::move(arrays)}, LeasedExchange(common_world(kept), std::move(plan), coherence_of(kept), options) {}

void ArrayExchange::start(CallSite where) {
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i].coherence->before_exchange(plan().kind, int(i), where);
  LeasedExchange::start(where);
}

}  // namespace tranship
