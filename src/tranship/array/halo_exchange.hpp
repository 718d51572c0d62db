// HaloExchange: fills the overlap of one or several arrays, in one message per pair of ranks.
#pragma once

#include <concepts>
#include <iterator>
#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/plan/halo.hpp>

namespace tranship {

enum class HaloDirection : std::uint8_t {
  update,   ///< ghosts become copies of their owners' cells
  adjoint,  ///< ghosts are added to their owners' cells, and become zero
};

/// An array with a halo of its own: how deep it goes, by which stencil.
struct HaloField {
  ArrayRef array;
  HaloOptions halo = {};
};

/// A field on a tiling: on every rank one array per tile (empty where the rank holds none of it), and its tile
/// dimensions.
struct TiledArray {
  std::vector<ArrayRef> tiles;
  std::vector<int> tile_dims;
};

class HaloExchange : public ArrayExchange {
 public:
  /// Collective over the world of the arrays, which must be one. The arrays may differ in type and layout; those of one
  /// layout are set up in about the time of one. Throws as plan_halo and Exchange do, and `invalid_use` for an array
  /// that stores no overlap, for one that is const, and for the adjoint of bools and of structs.
  explicit HaloExchange(const std::vector<ArrayRef>& arrays, const HaloOptions& halo = {},
                        HaloDirection direction = HaloDirection::update, ExchangeOptions options = {},
                        CallSite where = CallSite::here());
  /// The same with options of each array.
  explicit HaloExchange(const std::vector<HaloField>& fields, HaloDirection direction = HaloDirection::update,
                        ExchangeOptions options = {}, CallSite where = CallSite::here());
  /// The same for a vector, span or other range of Array<T>.
  template <std::ranges::input_range R>
  requires(std::convertible_to<std::ranges::range_reference_t<R>, const ArrayRef&> &&
           !std::same_as<std::remove_cvref_t<R>,
                         std::vector<ArrayRef>>) explicit HaloExchange(const R& arrays, const HaloOptions& halo = {},
                                                                       HaloDirection direction = HaloDirection::update,
                                                                       ExchangeOptions options = {},
                                                                       CallSite where = CallSite::here())
      : HaloExchange(std::vector<ArrayRef>(std::begin(arrays), std::end(arrays)), halo, direction, options, where) {}
  /// On a tiling.
  HaloExchange(const Tiling& tiling, const std::vector<TiledArray>& fields, const TiledHaloOptions& halo = {},
               HaloDirection direction = HaloDirection::update, ExchangeOptions options = {},
               CallSite where = CallSite::here());
};

}  // namespace tranship
