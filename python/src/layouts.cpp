// Distributions and their components: values without memory or ranks.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/layout/json.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/layout/tile_ranks.hpp>
#include <tranship/layout/tiling.hpp>
#include <tranship/layout/uneven_blocks.hpp>
#include <tranship/plan/explain.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/plan/plan_json.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/plan/relabel.hpp>
#include <tranship/view/message_picture.hpp>
#include <tranship/view/picture.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "halo_options.hpp"
#include "interpreter.hpp"

namespace tranship::python {

using nb::literals::operator""_a;

namespace {

/// Values are pickled as their members, or as texts that are checked when they are read; and equal ones have equal
/// hashes.
using PartitionState = std::tuple<int, int, Index, std::vector<Index>, Index, Index, int, std::array<Index, 4>>;
using GridState = std::tuple<Indices, Index, std::vector<int>, Rank, Rank, std::vector<Rank>>;
using SideState = std::tuple<int, int, std::string>;
using EdgeState = std::tuple<SideState, SideState, Indices, Indices>;
using TilingState = std::pair<std::vector<Indices>, std::vector<EdgeState>>;

PartitionState state_of(const Partition& p) {
  return {int(p.kind),
          int(p.remainder),
          p.block_size,
          p.bounds,
          p.minimum,
          p.modulo,
          int(p.points),
          {p.overlap.left.width, Index(p.overlap.left.edge), p.overlap.right.width, Index(p.overlap.right.edge)}};
}
template <class Enum>
Enum checked_enum(Index number, Enum last) {
  if (number < 0 || number > Index(last))
    throw_error(ErrorCode::invalid_use, "a pickled partition has {} where at most {} is known", number, Index(last));
  return static_cast<Enum>(number);
}
Partition partition_of(const PartitionState& state) {
  const auto& [kind, remainder, block_size, bounds, minimum, modulo, points, sides] = state;
  const auto edge = [](Index number) { return checked_enum(number, EdgePolicy::open); };
  return {.kind = checked_enum(kind, PartitionKind::irregular),
          .remainder = checked_enum(remainder, Remainder::ceil),
          .block_size = block_size,
          .bounds = bounds,
          .minimum = minimum,
          .modulo = modulo,
          .points = checked_enum(points, Points::interfaces),
          .overlap = {.left = {sides[0], edge(sides[1])}, .right = {sides[2], edge(sides[3])}}};
}

EdgePolicy edge_named(const std::string& name) {
  for (int policy = 0; policy <= int(EdgePolicy::open); ++policy)
    if (name == name_of(static_cast<EdgePolicy>(policy))) return static_cast<EdgePolicy>(policy);
  throw_error(ErrorCode::invalid_use,
              "edge='{}': needs one of truncate, toroidal, zero, replicate, replicate_local, open", name);
}

using EdgeName = std::variant<EdgePolicy, std::string>;
EdgePolicy edge_of(const EdgeName& edge) {
  const auto* const name = std::get_if<std::string>(&edge);
  return name ? edge_named(*name) : std::get<EdgePolicy>(edge);
}

TileSide side_of(const SideState& state) {
  const auto& [tile, dim, side] = state;
  if (side != "low" && side != "high")
    throw_error(ErrorCode::invalid_use, "a side '{}' of a tile: needs 'low' or 'high'", side);
  return {.tile = tile, .dim = dim, .side = side == "low" ? Side::low : Side::high};
}
SideState state_of(const TileSide& side) {
  return {side.tile, side.dim, side.side == Side::low ? "low" : "high"};
}
Tiling tiling_of(std::vector<Indices> extents, std::vector<TileEdge> edges) {
  if (extents.empty()) throw_error(ErrorCode::invalid_use, "a tiling needs at least 1 tile, has 0");
  return {std::move(extents), std::move(edges)};
}
Tiling tiling_of(const TilingState& state) {
  std::vector<TileEdge> edges;
  for (const auto& [from, to, dims, signs] : state.second) edges.push_back({side_of(from), side_of(to), dims, signs});
  return tiling_of(state.first, std::move(edges));
}
TilingState state_of(const Tiling& tiling) {
  TilingState state;
  for (int tile = 0; tile < tiling.tiles(); ++tile) state.first.push_back(tiling.extents(tile));
  for (const TileEdge& edge : tiling.edges())
    state.second.push_back({state_of(edge.from), state_of(edge.to), edge.along_dims, edge.along_signs});
  return state;
}

/// "[8,6] @ 2x1 : block, whole", without an element type.
std::string text_of(const Distribution& distribution) {
  const std::string text = to_text({ElementType::u8, distribution});
  return text.substr(std::min(text.find('['), text.size()));
}
/// A partition as layout texts write it.
std::string text_of(const Partition& partition) {
  const bool has_bounds = partition.bounds.size() > 1;
  const Index parts = has_bounds ? Index(partition.bounds.size()) - 1 : 1;
  constexpr Index many = Index(1) << 40;
  try {
    const std::string text =
        text_of(Distribution({has_bounds ? partition.bounds.back() : many}, Grid({parts}), {partition}));
    return text.substr(text.find(" : ") + 3);
  } catch (const Error&) {  // no array can have this partition
    return name_of(partition.kind);
  }
}

/// Binds `_repr_html_`, which notebooks call, to the package's function of this name.
auto shown_by(const char* function) {
  return [function](const nb::object& self) {
    return nb::str(nb::module_::import_("tranship._pictures").attr(function)(self));
  };
}

TileSide tile_side_of(nb::handle item) {
  SideState state;
  if (!nb::try_cast(item, state)) throw nb::type_error("a side of a tile is a tuple (tile, dim, 'low' or 'high')");
  return side_of(state);
}

TileEdge tile_edge_of(nb::handle item) {
  if (!nb::isinstance<nb::tuple>(item) && !nb::isinstance<nb::list>(item))
    throw nb::type_error("an edge is a tuple of two sides, perhaps with along_dims and along_signs");
  const auto parts = nb::borrow<nb::sequence>(item);
  const std::size_t count = nb::len(parts);
  if (count != 2 && count != 4)
    throw_error(ErrorCode::invalid_use,
                "an edge of {}: needs two sides, or these with along_dims and "
                "along_signs",
                amount(count, "item"));
  TileEdge out{.from = tile_side_of(parts[0]), .to = tile_side_of(parts[1])};
  if (count == 4) {
    if (!nb::try_cast(parts[2], out.along_dims) || !nb::try_cast(parts[3], out.along_signs))
      throw nb::type_error("along_dims and along_signs are sequences of ints");
  }
  return out;
}

}  // namespace

void bind_layouts(nb::module_& module) {
  module.attr("dims_max") = dims_max;
  nb::enum_<EdgePolicy>(module, "EdgePolicy", "The content of overlap beyond the edge of the array.")
      .value("truncate", EdgePolicy::truncate)
      .value("toroidal", EdgePolicy::toroidal)
      .value("zero", EdgePolicy::zero)
      .value("replicate", EdgePolicy::replicate)
      .value("replicate_local", EdgePolicy::replicate_local)
      .value("open", EdgePolicy::open);
  nb::enum_<Remainder>(module, "Remainder", "Where the cells go that do not divide evenly into blocks.")
      .value("low", Remainder::low)
      .value("high", Remainder::high)
      .value("ceil", Remainder::ceil);

  nb::class_<Grid>(module, "Grid", "Which rank holds which part: an extent for each dimension of the array.")
      .def(
          "__init__",
          [](Grid* self, const Indices& extents, Index replicas, const std::vector<int>& order, Rank first, Rank stride,
             const std::vector<Rank>& ranks) {
            new (self)
                Grid(extents, {.replicas = replicas, .order = order, .first = first, .stride = stride, .ranks = ranks});
          },
          "extents"_a, nb::kw_only(), "replicas"_a = 1, "order"_a = std::vector<int>(), "first"_a = 0, "stride"_a = 1,
          "ranks"_a = std::vector<Rank>())
      .def_prop_ro("extents", &Grid::extents)
      .def_prop_ro("replicas", &Grid::replicas)
      .def_prop_ro("ranks", &Grid::ranks, "All ranks of the world that it names, by ordinal.")
      .def_prop_ro("size", &Grid::size, "Number of ranks.")
      .def(
          "rank_of",
          [](const Grid& self, const Indices& coordinates, Index replica) {
            if (coordinates.size() != self.dims())
              throw_error(ErrorCode::invalid_use, "the coordinates have {}, the grid has {}",
                          amount(coordinates.size(), "dimension"), self.dims());
            for (int d = 0; d <= self.dims(); ++d) {
              const Index at = d < self.dims() ? coordinates[d] : replica;
              const Index extent = d < self.dims() ? self.extents()[d] : self.replicas();
              if (at < 0 || at >= extent)
                throw_error(ErrorCode::invalid_use, "{} {} does not exist: the grid has {}",
                            d < self.dims() ? "coordinate" : "replica", at, extent);
            }
            return self.rank_of({coordinates, replica});
          },
          "coordinates"_a, "replica"_a = 0, "The rank that holds the part at these coordinates.")
      .def(nb::self == nb::self)
      .def("__hash__", [](const Grid& self) { return nb::hash(nb::make_tuple(self.extents(), self.replicas())); })
      .def("__getstate__",
           [](const Grid& self) {
             return GridState{self.extents(), self.replicas(),
                              self.order(),   self.first(),
                              self.stride(),  self.ranks_listed() ? self.ranks() : std::vector<Rank>()};
           })
      .def("__setstate__",
           [](Grid& self, const GridState& state) {
             const auto& [extents, replicas, order, first, stride, ranks] = state;
             new (&self) Grid(extents,
                              {.replicas = replicas, .order = order, .first = first, .stride = stride, .ranks = ranks});
           })
      .def("__repr__", [](const Grid& grid) { return "grid(" + to_string(grid.extents()) + ")"; });

  nb::class_<Partition>(module, "Partition", "How one dimension is cut among the parts of a grid axis.")
      .def(
          "with_overlap",
          [](const Partition& self, Index left, Index right,
             const std::variant<EdgePolicy, std::string, std::pair<EdgeName, EdgeName>>& edge) {
            const auto edges = [&]() -> std::pair<EdgePolicy, EdgePolicy> {
              if (const auto* const both = std::get_if<std::pair<EdgeName, EdgeName>>(&edge))
                return {edge_of(both->first), edge_of(both->second)};
              const auto* const name = std::get_if<std::string>(&edge);
              const EdgePolicy one = name ? edge_named(*name) : std::get<EdgePolicy>(edge);
              return {one, one};
            }();
            return self.with_overlap({left, edges.first}, {right, edges.second});
          },
          "left"_a, "right"_a, "edge"_a = "truncate",
          "Returns the partition with extra cells to the left and to the right of those that each part owns. `edge`\n"
          "names their content beyond an edge: 'truncate', 'toroidal', 'zero', 'replicate', 'replicate_local' or\n"
          "'open'; one for both edges, or a pair of left and right.")
      .def("with_minimum", &Partition::with_minimum, "cells"_a)
      .def("with_modulo", &Partition::with_modulo, "cells"_a)
      .def("with_interfaces", &Partition::with_interfaces,
           "Points on the interfaces of cells: neighbours share the point between them.")
      .def_prop_ro("kind", [](const Partition& self) { return name_of(self.kind); })
      .def_prop_ro("overlap",
                   [](const Partition& self) { return std::pair(self.overlap.left.width, self.overlap.right.width); })
      .def_prop_ro(
          "edges",
          [](const Partition& self) {
            return std::pair(name_of(self.overlap.left.edge), name_of(self.overlap.right.edge));
          },
          "The policies of the left and the right edge.")
      .def_prop_ro("has_interfaces", [](const Partition& self) { return self.points == Points::interfaces; })
      .def(nb::self == nb::self)
      .def("__hash__", [](const Partition& self) { return nb::hash(nb::cast(state_of(self)).attr("__repr__")()); })
      .def("__getstate__", [](const Partition& self) { return state_of(self); })
      .def("__setstate__",
           [](Partition& self, const PartitionState& state) { new (&self) Partition(partition_of(state)); })
      .def("__repr__", [](const Partition& self) { return "<partition " + text_of(self) + ">"; });
  module.def("whole", &whole, "Every part holds the whole dimension.");
  module.def("block", &block, "remainder"_a = Remainder::low, "One contiguous block for each part.");
  module.def("cyclic", &cyclic, "block_size"_a = 1, "Blocks of `block_size` cells, dealt in turn.");
  module.def("irregular", &irregular, "bounds"_a,
             "One block for each part, with the given bounds: parts + 1 numbers from 0 to the extent.");

  nb::class_<Distribution>(module, "Distribution",
                           "Where every cell of a global array is. A value: equal by content, of no running world.")
      .def_prop_ro("extents", &Distribution::extents)
      .def_prop_ro("shape", &Distribution::extents)
      .def_prop_ro("dims", &Distribution::dims)
      .def_prop_ro("grid", &Distribution::grid)
      .def_prop_ro("is_indexed", &Distribution::is_indexed)
      .def(
          "partition",
          [](const Distribution& self, int dim) {
            if (self.is_indexed() || dim < 0 || dim >= self.dims()) throw nb::index_error("no such dimension");
            return self.axis(dim).partition();
          },
          "dim"_a)
      .def("local_extents", &Distribution::local_extents, "rank"_a,
           "Extents of a rank's local array, overlap included; zeros for a rank outside the grid.")
      .def(
          "local_strides", [](const Distribution& self, Rank rank) { return self.storage(rank).strides; }, "rank"_a,
          "Strides of a rank's local array, in elements.")
      .def(
          "storage_elements", [](const Distribution& self, Rank rank) { return self.storage(rank).elements; }, "rank"_a,
          "Elements that a rank's local array takes in memory.")
      .def("owner", &Distribution::owner, "cell"_a, "The rank that owns a cell.")
      .def("owners", &Distribution::owners, "cell"_a)
      .def("local_of", &Distribution::local_of, "rank"_a, "cell"_a,
           "Local indices of a cell that the rank owns, or None.")
      .def(
          "cell_of",
          [](const Distribution& self, Rank rank, const Indices& local) {
            const Distribution::Cell cell = self.cell_of(rank, local);
            return std::pair(cell.at, cell.owned);
          },
          "rank"_a, "local"_a, "The cell that a local element stands for, and whether the rank owns it.")
      .def(
          "slices",
          [](const Distribution& self, Rank rank) {
            nb::list out;
            const auto slices_of = [](const Indices& lower, const Indices& extents) {
              nb::list sides;
              for (int d = 0; d < lower.size(); ++d)
                sides.append(nb::slice(nb::int_(lower[d]), nb::int_(lower[d] + extents[d]), nb::none()));
              return nb::tuple(sides);
            };
            for (const Slice& slice : self.slices(rank)) {
              if (slice.owned.empty()) continue;
              const Indices first = self.local_of(rank, slice.owned.lower).value();
              Indices stored = first;
              for (int d = 0; d < stored.size(); ++d) stored[d] -= slice.owned.lower[d] - slice.stored.lower[d];
              nb::dict one;
              one["owned"] = slices_of(slice.owned.lower, slice.owned.extents());
              one["stored"] = slices_of(slice.stored.lower, slice.stored.extents());
              one["local_owned"] = slices_of(first, slice.owned.extents());
              one["local_stored"] = slices_of(stored, slice.stored.extents());
              out.append(one);
            }
            return out;
          },
          "rank"_a,
          "The slices of a rank that own cells: which global cells they own and store (beyond an edge: outside the "
          "array),\n"
          "and where these lie in the local array; each as a tuple of Python slices.")
      .def(
          "indexed_cells",
          [](const Distribution& self, Rank rank) -> nb::object {
            if (!self.is_indexed()) return nb::none();
            const std::optional<Index> part = self.grid().ordinal_of(rank);
            const IndexedPart none;
            const IndexedPart& ids = part ? self.indexed_part(*part) : none;
            return nb::make_tuple(self.indexed_dims(), nb::cast(ids.owned), nb::cast(ids.ghosts));
          },
          "rank"_a,
          "The number of numbered dimensions of an indexed distribution, and the ids that a rank owns and those that\n"
          "it keeps copies of; None for other distributions.")
      .def("on_ranks", &Distribution::on_ranks, "ranks"_a,
           "Returns the distribution with its parts on other ranks, by ordinal.")
      .def("_repr_html_", shown_by("distribution_html"))
      .def(nb::self == nb::self)
      .def("__hash__",
           [](const Distribution& self) { return nb::hash(nb::make_tuple(self.extents(), self.grid().extents())); })
      .def("__getstate__", [](const Distribution& self) { return to_json(self); })
      .def("__setstate__",
           [](Distribution& self, const std::string& text) { new (&self) Distribution(distribution_from_json(text)); })
      .def("__repr__", [](const Distribution& self) { return "<distribution " + text_of(self) + ">"; });
  module.def(
      "make_distribution",
      [](const Indices& extents, const Grid& grid, const std::vector<Partition>& partitions, const Indices& order,
         const Indices& strides, const Indices& spacing, Index align, Index offset) {
        return Distribution(extents, grid, partitions,
                            {.order = order, .strides = strides, .spacing = spacing, .align = align, .offset = offset});
      },
      "extents"_a, "grid"_a, "partitions"_a, "order"_a = Indices(), "strides"_a = Indices(), "spacing"_a = Indices(),
      "align"_a = 1, "offset"_a = 0);
  module.def(
      "make_indexed",
      [](const Indices& extents, int indexed_dims, const Grid& grid,
         const std::vector<std::pair<std::vector<Index>, std::vector<Index>>>& parts) {
        std::vector<IndexedPart> lists;
        for (const auto& [owned, ghosts] : parts) lists.push_back({owned, ghosts});
        return Distribution::indexed(extents, indexed_dims, grid, std::move(lists));
      },
      "extents"_a, "indexed_dims"_a, "grid"_a, "parts"_a);

  nb::class_<Tiling>(module, "Tiling",
                     "Tiles joined by edges: what lies beyond a side is a cell of another tile.\n"
                     "\n"
                     "``Tiling(extents, edges)``: extents of every tile, of 1 to 3 dimensions, and edges "
                     "``(side, side)`` or\n"
                     "``(side, side, along_dims, along_signs)`` of two sides ``(tile, dim, 'low' or 'high')``. The "
                     "dimensions of the\n"
                     "first tile that run along the edge, in increasing order, run with `along_dims` of the second "
                     "one, each in the\n"
                     "direction of its sign; where nothing is said, in increasing order and all in the same "
                     "direction.\n"
                     "\n"
                     "Raises InvalidUse for sides that do not exist or are joined twice, and extents that differ "
                     "along an edge.")
      .def(
          "__init__",
          [](Tiling* self, std::vector<Indices> extents, const nb::sequence& edges) {
            std::vector<TileEdge> joined;
            for (nb::handle item : edges) joined.push_back(tile_edge_of(item));
            new (self) Tiling(tiling_of(std::move(extents), std::move(joined)));
          },
          "extents"_a, "edges"_a)
      .def_prop_ro(
          "edges", [](const Tiling& self) { return state_of(self).second; },
          "The joined sides, as they were given: ((tile, dim, 'low' or 'high'), the same of the other, along_dims, "
          "along_signs).")
      .def_prop_ro("tiles", &Tiling::tiles)
      .def_prop_ro("dims", &Tiling::dims)
      .def("extents", &Tiling::extents, "tile"_a)
      .def(
          "locate",
          [](const Tiling& self, int tile, const Indices& cell) -> std::optional<std::pair<int, Indices>> {
            const auto found = self.locate(tile, cell);
            if (!found) return {};
            return std::pair(found->tile, found->cell);
          },
          "tile"_a, "cell"_a, "The tile that owns a cell, and the cell there; None where no tile does.")
      .def(nb::self == nb::self)
      .def("__hash__", [](const Tiling& self) { return nb::hash(nb::tuple(nb::cast(state_of(self).first))); })
      .def("__getstate__", [](const Tiling& self) { return state_of(self); })
      .def("__setstate__", [](Tiling& self, const TilingState& state) { new (&self) Tiling(tiling_of(state)); })
      .def("__repr__", [](const Tiling& self) {
        return fmt::format("<tiling of {}, the first of [{}]>", amount(self.tiles(), "tile"),
                           to_string(self.extents(0)));
      });
  module.def("cubed_sphere", &cubed_sphere, "n"_a,
             "Six tiles of n by n cells, dimensions (y, x), the faces of a cube.");
  module.def("doubly_periodic", &doubly_periodic, "ny"_a, "nx"_a, "One tile, periodic in both dimensions (y, x).");
  module.def("folded", &folded, "ny"_a, "nx"_a,
             "One tile, periodic in x and folded at the high end of y, as tripolar ocean grids are.");
  module.def("periodic", &periodic, "extents"_a, "periodic_dims"_a, "One tile, of which some dimensions are periodic.");

  nb::class_<TileRanks>(
      module, "TileRanks",
      "Ranks on a tiling: a grid of ranks cuts every tile; ranks are numbered tile by tile, row by row.\n"
      "\n"
      "Raises InvalidUse where the cuts of two joined sides do not meet.")
      .def(nb::init<const Tiling&, const Indices&>(), "tiling"_a, "grid"_a)
      .def(
          "neighbor",
          [](const TileRanks& self, Rank rank, const Indices& direction) -> std::optional<std::pair<Rank, int>> {
            const auto found = self.neighbor(rank, direction);
            if (!found) return {};
            return std::pair(found->rank, clockwise_rotations(found->map).value_or(0));
          },
          "rank"_a, "direction"_a,
          "The rank one step (-1, 0 or 1) away in each dimension, and the clockwise rotations of its frame; None where "
          "no "
          "rank is.");
  module.def("uneven_block_bounds", &uneven_block_bounds, "extent"_a, "parts"_a, "edge_interior_ratio"_a,
             "Bounds of parts, of which the first and the last have one size and all others another, as near to that "
             "ratio as whole cells allow. Raises InvalidUse where there is no such cut.");

  nb::class_<ArraySpec>(module, "ArraySpec", "An element type with a distribution: what a layout text describes.")
      .def(
          "__init__",
          [](ArraySpec* self, const std::string& type, const Distribution& distribution) {
            new (self) ArraySpec{element_type_named(type).value(), distribution};
          },
          "type"_a, "distribution"_a)
      .def_prop_ro("type", [](const ArraySpec& self) { return std::string(name_of(self.type)); })
      .def_prop_ro("numpy_type", [](const ArraySpec& self) { return std::string(numpy_kind(self.type)); })
      .def_ro("distribution", &ArraySpec::distribution)
      .def("__str__", [](const ArraySpec& self) { return to_text(self); })
      .def("_repr_html_", shown_by("layout_html"))
      .def("__repr__", [](const ArraySpec& self) { return "layout('" + to_text(self) + "')"; })
      .def(nb::self == nb::self)
      .def("__hash__",
           [](const ArraySpec& self) { return nb::hash(nb::make_tuple(int(self.type), self.distribution.extents())); })
      .def("__getstate__", [](const ArraySpec& self) { return to_json(self); })
      .def("__setstate__",
           [](ArraySpec& self, const std::string& text) { new (&self) ArraySpec(array_spec_from_json(text)); });
  module.def(
      "layout", [](const std::string& text) { return parse_layout(text); }, "text"_a,
      "Reads a layout text, such as 'f64[8192,8192] @ 4x1 : block, whole'.");
  module.def(
      "element_type_name",
      [](const std::string& kind) { return std::string(name_of(element_type_of_numpy(kind).value())); }, "kind"_a,
      "The name of NumPy's kind and size ('f8') in layout texts ('f64').");

  nb::class_<TransferPlan>(module, "TransferPlan", "The cells that one rank receives, sends and fills.")
      .def("explain", [](const TransferPlan& plan) { return explain_text(plan); })
      .def("to_json", [](const TransferPlan& plan) { return explain_json(plan); })
      .def_ro("rank", &TransferPlan::rank, "The rank whose plan it is.")
      .def("_repr_html_", shown_by("plan_html"))
      .def("__repr__", [](const TransferPlan& plan) { return fmt::format("<plan of rank {}>", plan.rank); })
      .def("__reduce__",
           [](const TransferPlan& plan) {
             // A Python function, which pickle can find by its name.
             return nb::make_tuple(nb::module_::import_("tranship").attr("load_plan"), nb::make_tuple(save_plan(plan)));
           })
      .def(nb::self == nb::self)
      .def("__hash__", [](const TransferPlan& plan) { return nb::hash(nb::int_(plan.rank)); });
  module.def(
      "save_plan", [](const TransferPlan& plan) { return without_gil([&] { return save_plan(plan); }); }, "plan"_a);
  module.def(
      "load_plan", [](const std::string& text) { return without_gil([&] { return load_plan(text); }); }, "text"_a);
  module.def(
      "plan_svg", [](const TransferPlan& plan) { return messages_svg(summarise(plan)); }, "plan"_a);
  module.def(
      "plans_svg",
      [](const std::vector<const TransferPlan*>& plans) {
        return without_gil([&] {
          std::vector<PlanSummary> summaries;
          for (const TransferPlan* plan : plans) summaries.push_back(summarise(*plan));
          return messages_svg(summaries);
        });
      },
      "plans"_a);
  module.def(
      "plan_redistribution",
      [](const ArraySpec& source, const ArraySpec& target, Rank rank) {
        return without_gil([&] { return plan_redistribution(source, target, rank); });
      },
      "source"_a, "target"_a, "rank"_a);
  module.def(
      "plan_halo",
      [](const std::vector<ArraySpec>& fields, Rank rank, const HaloNumbers& halo) {
        const HaloOptions options = halo_options_of(halo);
        return without_gil([&] { return plan_halo(fields, rank, options); });
      },
      "fields"_a, "rank"_a, "halo"_a);
  module.def(
      "relabel",
      [](const Distribution& source, const Distribution& target) {
        Relabelled best = without_gil([&] { return relabel(source, target); });
        return std::tuple(std::move(best.target), best.cells_moved, best.cells_moved_before);
      },
      "source"_a, "target"_a, "The target on other ranks, the cells that then move, and those that moved before.");
  module.def(
      "summarise_redistribution",
      [](const ArraySpec& source, const ArraySpec& target) {
        return without_gil([&] { return explain_text(summarise_redistribution(source, target)); });
      },
      "source"_a, "target"_a, "The work of all ranks together, as text.");
}

}  // namespace tranship::python
