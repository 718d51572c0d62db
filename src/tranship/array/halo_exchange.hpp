// Detail: HaloExchange, which fills the overlap of one or several arrays with one message per pair of ranks.
// plan/halo.hpp computes the moves, and run/exchange.hpp makes them.
#pragma once

#include <concepts>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/base/combine.hpp>
#include <tranship/plan/halo.hpp>

namespace tranship {

enum class HaloDirection : std::uint8_t {
  update,   ///< ghosts become copies of their owners' cells
  adjoint,  ///< ghosts are added to their owners' cells, and become zero
};

/// A HaloDirection, or a Combine: an adjoint that combines ghosts with their owners' cells by another operation than
/// sum.
class HaloOperation {
 public:
  constexpr HaloOperation(HaloDirection direction = HaloDirection::update) noexcept
      : combine_(direction == HaloDirection::adjoint ? std::optional(Combine::sum) : std::nullopt) {}
  constexpr HaloOperation(Combine combine) noexcept : combine_(combine) {}

  /// Returns how ghosts are combined into their owners; empty for an update.
  constexpr std::optional<Combine> combine() const noexcept { return combine_; }

 private:
  std::optional<Combine> combine_;
};

/// An array with its own halo options: how deep the halo goes, and by which stencil.
struct HaloField {
  ArrayRef array;
  HaloOptions halo = {};
};

/// A field on a tiling: on every rank, one array per tile (empty if the rank holds no part of the tile), and the
/// dimensions of these arrays that are the tile's.
struct TiledArray {
  std::vector<ArrayRef> tiles;
  std::vector<int> tile_dims;
};

/// Fills the ghosts of arrays: call `halo()`, or `halo.start()`, work on cells that are not exchanged, `halo.finish()`.
///
/// Set-up is collective over the world of the arrays, which must all belong to one, and waits for all ranks until the
/// world's timeout. It plans in time that does not depend on the extents, compares the plans of the ranks, and
/// allocates buffers for staged messages. Runs allocate nothing. Each run sends one message per pair of neighbours for
/// all arrays together. start() never waits for peers (exceptions: array_exchange.hpp); finish() does, until the
/// world's timeout. Every rank calls them equally often (they are declared in run/exchange.hpp). Between the two,
/// ghosts must not be touched, and owned cells that ghosts copy must not be written. When finish() has returned on a
/// rank, its ghosts are filled and all neighbours have read its own cells.
///
/// An adjoint combines the ghosts that an update with the same options would fill into the cells of their owners, in
/// the order of the ranks, so that sums are the same in every run. These ghosts then become the identity of the
/// combination (zero for sums, the largest value for minima). Other ghosts are not touched.
///
/// With Sources::snapshot, ghosts get the values that their owners held at start(), whatever is written to any cell
/// before finish(); the cells that are sent are then copied twice.
///
/// Keeps the memory of arrays that tranship has allocated. Foreign memory and the World must outlive it.
class HaloExchange : public ArrayExchange {
 public:
  /// The arrays may differ in type and layout; setting up several of one layout takes about the time of one. Nothing
  /// moves for an array that stores no overlap. Each rank checks by itself, before it sends anything, and throws:
  /// `invalid_use` for a const array, for arrays of two worlds, for a depth or an offset that reaches beyond the
  /// overlap, and for adjoints of structs and sums of bools; `unsupported` for a replicated array, for a snapshot of an
  /// adjoint, for products and orders of complex numbers, and for plans of more than 2^22 runs (about 300 MB). The
  /// ranks check together, and all throw: `mismatch` when their calls differ; `invalid_use` for arrays that share
  /// memory; `no_memory`; `timeout` and `peer_lost` when a rank does not take part. The arrays are then unchanged,
  /// except with Schedule::measured.
  /// Schedule::measured.
  explicit HaloExchange(const std::vector<ArrayRef>& arrays, const HaloOptions& halo = {}, HaloOperation operation = {},
                        ExchangeOptions options = {}, CallSite where = CallSite::here());
  /// Takes the options of each array; otherwise as above.
  explicit HaloExchange(const std::vector<HaloField>& fields, HaloOperation operation = {},
                        ExchangeOptions options = {}, CallSite where = CallSite::here());
  /// Takes a vector, span or other range of Array<T>.
  template <std::ranges::input_range R>
  requires(std::convertible_to<std::ranges::range_reference_t<R>, const ArrayRef&> &&
           !std::same_as<std::remove_cvref_t<R>,
                         std::vector<ArrayRef>>) explicit HaloExchange(const R& arrays, const HaloOptions& halo = {},
                                                                       HaloOperation operation = {},
                                                                       ExchangeOptions options = {},
                                                                       CallSite where = CallSite::here())
      : HaloExchange(std::vector<ArrayRef>(std::begin(arrays), std::end(arrays)), halo, operation, options, where) {}
  /// Takes this rank's plan of a halo or of its adjoint, which was made or loaded before. The plan has one slot for
  /// each array, in their order, or fewer: then one for each layout. Throws `mismatch` for a plan of other layouts.
  template <std::same_as<TransferPlan> Plan>
  HaloExchange(const std::vector<ArrayRef>& arrays, Plan plan, ExchangeOptions options = {},
               CallSite where = CallSite::here())
      : HaloExchange(Planned{std::move(plan)}, arrays, options, where) {}
  /// Fills halos on a tiling. Also throws `invalid_use` for tile dimensions whose edge policy is not `open`, `mismatch`
  /// for arrays that do not have the extents of their tiles, and `unsupported` for products, minima and maxima of
  /// vectors that change their sign on the way.
  HaloExchange(const Tiling& tiling, const std::vector<TiledArray>& fields, const TiledHaloOptions& halo = {},
               HaloOperation operation = {}, ExchangeOptions options = {}, CallSite where = CallSite::here());

 private:
  struct Planned {
    TransferPlan plan;
  };
  HaloExchange(Planned planned, const std::vector<ArrayRef>& arrays, ExchangeOptions options, CallSite where);
};

}  // namespace tranship
