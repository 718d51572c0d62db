#include "tranship/array/ghosts.hpp"

#include <tranship/array/ghosts/ghost_exchange.hpp>

namespace tranship {
Ghosts::Ghosts(std::vector<ArrayRef> arrays, ExchangeOptions options)
    : arrays_(std::move(arrays)),
      exchange_(std::make_unique<GhostExchange>(common_world(arrays_), coherence_of(arrays_), options)) {}

Ghosts::~Ghosts() = default;

void Ghosts::begin_broadcast(Index depth, const std::optional<Region>& region, CallSite where) {
  exchange_->begin_reduce(region, where);
  exchange_->end(where);
  exchange_->begin_broadcast(region, depth, where);
}

void Ghosts::begin_reduce(const std::optional<Region>& region, CallSite where) {
  exchange_->begin_reduce(region, where);
}

bool Ghosts::test(CallSite where) {
  return exchange_->test(where);
}

void Ghosts::end(CallSite where) {
  exchange_->end(where);
}

const GhostCounts& Ghosts::counts() const noexcept {
  return exchange_->counts();
}

}  // namespace tranship
