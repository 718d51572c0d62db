// Halo updates on a tiling, bound to the memory that they are started with: exchanges that take a snapshot of the cells
// that they send.
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/run/exchange.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "interpreter.hpp"
#include "rank_handle.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

/// A whole array of Python: the object that keeps its memory, its address, its shape, its strides in elements, and the
/// first cell of the rank's part in it.
using Memory = std::tuple<nb::object, std::uintptr_t, Indices, Indices, Indices>;

/// An update and the arrays that it was last bound to.
class HaloUpdate final : public Resident {
 public:
  HaloUpdate(std::shared_ptr<RankHandle> rank, const Tiling& tiling, const std::vector<TiledField>& fields,
             const TiledHaloOptions& options, int tile, CallSite where)
      : rank_(std::move(rank)), tiles_(tiling.tiles()), tile_(tile) {
    World& world = rank_->world();
    std::vector<std::vector<ExchangeArray>> slots;
    Index bytes = 0;
    for (std::size_t f = 0; f < fields.size(); ++f)
      for (std::size_t t = 0; t < fields[f].tiles.size(); ++t) {
        const ArraySpec& spec = fields[f].tiles[t];
        StridedView view{.type = spec.type, .extents = spec.distribution.local_extents(world.rank())};
        view.strides = Indices::filled(view.extents.size(), 1);
        const Index elements = checked_product(view.extents);
        if (elements > 0 && int(t) != tile)
          throw_error(ErrorCode::invalid_use, "field {} has {} on tile {}, and tile {} is bound (rank {})", f,
                      amount(elements, "element"), t, tile, world.rank());
        bytes += elements * size_bytes(spec.type);
        views_.push_back(view);
        std::string name = fmt::format("field {} on tile {}", f, t);
        slots.push_back({{.view = view, .name = name, .spec = std::make_shared<const ArraySpec>(spec), .label = name}});
      }
    is_brief_ = bytes <= brief_bytes && world.context().completes_at_once();
    exchange_ = without_gil([&] {
      return std::make_unique<Exchange>(world, plan_halo(tiling, fields, world.rank(), options), std::move(slots),
                                        ExchangeOptions{.sources = Sources::snapshot}, where);
    });
  }
  ~HaloUpdate() override { leave(); }
  HaloUpdate(const HaloUpdate&) = delete;
  HaloUpdate& operator=(const HaloUpdate&) = delete;

  void leave() noexcept override {
    without_gil([this] { exchange_.reset(); });
  }
  void bind(const std::vector<Memory>& fields) {
    if (fields.size() * std::size_t(tiles_) != views_.size())
      throw_error(ErrorCode::invalid_use, "{} for an update of {}: give one for each field",
                  amount(fields.size(), "array"), views_.size() / std::size_t(tiles_));
    std::vector<StridedView> views = views_;
    std::vector<nb::object> owners;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto& [owner, address, shape, strides, lower] = fields[f];
      StridedView& view = views[f * std::size_t(tiles_) + std::size_t(tile_)];
      const int dims = view.extents.size();
      if (shape.size() != dims || strides.size() != dims || lower.size() != dims)
        throw_error(ErrorCode::invalid_use, "field {} has {}, and its array {}", f, amount(dims, "dimension"),
                    shape.size());
      Index offset = 0;
      for (int d = 0; d < dims; ++d) {
        if (lower[d] < 0 || lower[d] > shape[d] - view.extents[d])
          throw_error(ErrorCode::invalid_use, "field {}: cells {} to {} of dimension {}, which has {}", f, lower[d],
                      lower[d] + view.extents[d], d, shape[d]);
        offset += lower[d] * strides[d];
      }
      view.data = reinterpret_cast<std::byte*>(address) + offset * size_bytes(view.type);
      view.strides = strides;
      owners.push_back(owner);
    }
    exchange().bind(views);
    views_ = std::move(views);
    owners_ = std::move(owners);
  }
  void start(CallSite where) {
    if (owners_.empty()) throw Error(ErrorCode::invalid_use, "a halo update is bound to arrays before it is started");
    Exchange& moved = exchange();
    without_gil_unless(is_brief_, [&] { moved.start(where); });
  }
  void finish(CallSite where) {
    Exchange& moved = exchange();
    if (!is_brief_ || !without_gil_unless(is_brief_, [&] { return moved.test(where); }))
      without_gil([&] { moved.finish(where); });
  }
  void release() { owners_.clear(); }

 private:
  Exchange& exchange() const {
    if (!exchange_ || rank_->is_in_child()) (void)rank_->world();
    return *exchange_;
  }

  std::shared_ptr<RankHandle> rank_;
  int tiles_, tile_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<StridedView> views_;
  std::vector<nb::object> owners_;
  bool is_brief_ = false;
};

}  // namespace

void bind_halo_update(nb::module_& module) {
  nb::class_<HaloUpdate>(
      module, "HaloUpdate",
      "Fills the overlap of fields on a tiling, in any memory: what is sent is packed by start(), and\n"
      "cells are written by finish() alone.")
      .def(
          "bind", &HaloUpdate::bind, "fields"_a,
          "From here on the update is one of these arrays, each a tuple of what keeps it, its address, shape, strides\n"
          "in elements, and the first cell in it of the rank's part. Local; not between start() and finish().")
      .def(
          "start", [](HaloUpdate& self) { self.start(python_call_site()); }, "Packs and sends; never waits.")
      .def(
          "finish", [](HaloUpdate& self) { self.finish(python_call_site()); },
          "Waits until all has arrived, until the world's timeout at the latest.")
      .def("release", &HaloUpdate::release, "Releases the arrays. The update is bound again before its next start.");
  module.def(
      "make_halo_update",
      [](const std::shared_ptr<RankHandle>& rank, const Tiling& tiling,
         const std::vector<std::pair<std::vector<ArraySpec>, std::vector<int>>>& fields,
         const std::vector<std::vector<std::pair<int, int>>>& vectors, int tile) {
        std::vector<TiledField> tiled;
        for (const auto& [tiles, dims] : fields) tiled.push_back({.tiles = tiles, .tile_dims = dims});
        TiledHaloOptions options;
        for (const auto& vector : vectors) {
          options.vectors.emplace_back();
          for (const auto& [field, along] : vector) options.vectors.back().push_back({.field = field, .along = along});
        }
        auto handle = std::make_shared<HaloUpdate>(rank, tiling, tiled, options, tile, python_call_site());
        rank->add(handle);
        return handle;
      },
      "world"_a, "tiling"_a, "fields"_a, "vectors"_a, "tile"_a,
      "Collective: an update of fields, each a pair of one spec for each tile and the dimensions of the tiles. The "
      "rank\n"
      "has a part of one tile.");
}

}  // namespace tranship::python
