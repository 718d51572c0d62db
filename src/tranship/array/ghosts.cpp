#include <tranship/array/ghosts.hpp>

namespace tranship {
Ghosts::Ghosts(std::vector<ArrayRef> arrays, ExchangeOptions options)
    : arrays_(std::move(arrays)), exchange_(common_world(arrays_), coherence_of(arrays_), options) {}

void Ghosts::begin_broadcast(Index depth, const std::optional<Region>& region, CallSite where) {
  exchange_.begin_reduce(region, where);
  exchange_.end();
  exchange_.begin_broadcast(region, depth, where);
}

void Ghosts::begin_reduce(const std::optional<Region>& region, CallSite where) {
  exchange_.begin_reduce(region, where);
}

}  // namespace tranship
