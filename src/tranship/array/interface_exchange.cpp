#include "tranship/array/interface_exchange.hpp"

#include <algorithm>

#include <tranship/array/array_plan.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/interfaces.hpp>
#include <tranship/run/located.hpp>

namespace tranship {
namespace {

/// Makes one slot for all arrays of one layout.
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

ArrayPlan plan_of(const Tiling& tiling, const std::vector<TiledArray>& fields,
                  const std::vector<std::vector<VectorField>>& vectors) {
  ArrayPlan out;
  std::vector<TiledField> specs;
  std::vector<ArrayRef> arrays;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    TiledField& spec = specs.emplace_back();
    spec.tile_dims = fields[f].tile_dims;
    for (std::size_t t = 0; t < fields[f].tiles.size(); ++t) {
      const ArrayRef& tile = fields[f].tiles[t];
      arrays.push_back(tile);
      common_world(arrays);  // throws for an array without memory or of another world
      spec.tiles.push_back(*tile.spec);
      out.slots.push_back({{ChangeKind::changed}, {{tile, fmt::format("field {} on tile {}", f, t)}}});
    }
  }
  out.plan = plan_interfaces(tiling, specs, common_world(arrays).rank(), vectors);
  return out;
}

}  // namespace

InterfaceExchange::InterfaceExchange(const std::vector<ArrayRef>& arrays, ExchangeOptions options, CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(arrays); }), options, where) {}

InterfaceExchange::InterfaceExchange(const Tiling& tiling, const std::vector<TiledArray>& fields,
                                     const std::vector<std::vector<VectorField>>& vectors, ExchangeOptions options,
                                     CallSite where)
    : ArrayExchange(located(where, [&] { return plan_of(tiling, fields, vectors); }), options, where) {}

}  // namespace tranship
