#include <tranship/array/halo_exchange.hpp>

namespace tranship {
namespace {

std::vector<ArrayRef> arrays_of(const std::vector<TiledArray>& fields) {
  std::vector<ArrayRef> out;
  for (const TiledArray& field : fields) out.insert(out.end(), field.tiles.begin(), field.tiles.end());
  return out;
}

TransferPlan directed(TransferPlan plan, HaloDirection direction) {
  return direction == HaloDirection::update ? std::move(plan) : adjoint(plan);
}

TransferPlan plan_of(const std::vector<ArrayRef>& arrays, const HaloOptions& halo, HaloDirection direction) {
  const Rank rank = common_world(arrays).rank();
  std::vector<ArraySpec> specs;
  for (const ArrayRef& array : arrays) specs.push_back(*array.spec);
  return directed(plan_halo(specs, rank, halo), direction);
}

TransferPlan plan_of(const Tiling& tiling, const std::vector<TiledArray>& fields, const TiledHaloOptions& halo,
                     HaloDirection direction) {
  const Rank rank = common_world(arrays_of(fields)).rank();
  std::vector<TiledField> specs;
  for (const TiledArray& field : fields) {
    TiledField& spec = specs.emplace_back();
    spec.tile_dims = field.tile_dims;
    for (const ArrayRef& tile : field.tiles) spec.tiles.push_back(*tile.spec);
  }
  return directed(plan_halo(tiling, specs, rank, halo), direction);
}

}  // namespace

HaloExchange::HaloExchange(const std::vector<ArrayRef>& arrays, const HaloOptions& halo, HaloDirection direction,
                           ExchangeOptions options)
    : ArrayExchange(arrays, plan_of(arrays, halo, direction), options) {}

HaloExchange::HaloExchange(const Tiling& tiling, const std::vector<TiledArray>& fields, const TiledHaloOptions& halo,
                           HaloDirection direction, ExchangeOptions options)
    : ArrayExchange(arrays_of(fields), plan_of(tiling, fields, halo, direction), options) {}

}  // namespace tranship
