// NDSL's own halo updates on cubes of 6 and 24 ranks: what every rank held before and after. The points that two ranks
// share hold different values on them (support/ndsl_cases.hpp).
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/plan/halo.hpp>

#include "support/ndsl_cases.hpp"
#include "support/plan_interpreter.hpp"

namespace tranship {
namespace {

using namespace test;
using nlohmann::json;

/// 0 for the dimensions along y, 1 for those along x, -1 for all others.
int tile_dim(const std::string& dim) {
  return dim[0] == 'j' ? 0 : dim[0] == 'i' ? 1 : -1;
}

/// One quantity of a case: its field, and what every rank holds of it in memory with room around what it computes.
struct Quantity {
  TiledField field;
  ElementType type = ElementType::f64;
  std::vector<Indices> shapes, origins;  ///< by rank
  std::vector<std::string> before, after;

  Index element_bytes() const { return type == ElementType::f64 ? 8 : 4; }

  /// Where a local cell of our array, whose overlap is `width` wide in the dimensions of the tile, lies in memory.
  Index index_of(Rank rank, const Indices& local, Index width) const {
    Index out = 0;
    for (int d = 0; d < local.size(); ++d) {
      const bool tiled = std::count(field.tile_dims.begin(), field.tile_dims.end(), d) > 0;
      out = out * shapes[rank][d] + origins[rank][d] + local[d] - (tiled ? width : 0);
    }
    return out;
  }
};

Quantity quantity_of(const json& c, int number, const NdslArrays& arrays) {
  const json& q = c.at("quantities")[number];
  const auto dims = q.at("dims").get<std::vector<std::string>>();
  const Index layout = c.at("layout")[0], width = c.at("n_points");
  const Rank ranks = c.at("ranks");
  Quantity out;
  const std::string dtype = q.at("dtype");
  out.type = dtype == "<f8" ? ElementType::f64 : dtype == "<f4" ? ElementType::f32 : ElementType::i32;

  Indices extents, grid_extents;
  std::vector<Partition> partitions;
  std::vector<int> order{int(dims.size())};
  out.field.tile_dims.resize(2);
  for (int d = 0; d < int(dims.size()); ++d) {
    const int along = tile_dim(dims[d]);
    const Index extent = q.at("extent")[d];
    if (along < 0) {
      extents.push_back(extent);
      grid_extents.push_back(1);
      partitions.push_back(whole());
      order.push_back(d);
      continue;
    }
    const bool interfaces = dims[d].find("interface") != std::string::npos;
    extents.push_back((extent - interfaces) * layout + interfaces);
    grid_extents.push_back(layout);
    const Partition cut = interfaces ? block().with_interfaces() : block();
    partitions.push_back(cut.with_overlap(width, width, EdgePolicy::open));
    out.field.tile_dims[along] = d;
  }
  for (const int d : out.field.tile_dims) order.push_back(d);
  for (int tile = 0; tile < 6; ++tile)
    out.field.tiles.push_back(
        {out.type, Distribution(extents, Grid(grid_extents, {.order = order, .first = Rank(tile * layout * layout)}),
                                partitions)});

  const std::string name = c.at("id").get<std::string>() + "/q" + std::to_string(number);
  for (Rank r = 0; r < ranks; ++r) {
    const json& own = q.at("per_rank").is_null() ? q : q.at("per_rank")[r];
    out.shapes.push_back(Indices(own.at("shape").get<std::vector<Index>>()));
    out.origins.push_back(Indices(own.at("origin").get<std::vector<Index>>()));
    const auto bytes_of = [&](const std::string& when) {
      if (arrays.has(name + when)) {
        const std::string all = arrays.elements(name + when);
        return all.substr(all.size() / std::size_t(ranks) * std::size_t(r), all.size() / std::size_t(ranks));
      }
      return arrays.elements(name + when + "_r" + std::to_string(r));
    };
    out.before.push_back(bytes_of("_before"));
    out.after.push_back(bytes_of("_after"));
  }
  return out;
}

/// An element as NDSL negates it: of numbers with a fraction the sign bit, also of NaN and zero; others wrap.
std::string negated(std::string element, ElementType type) {
  if (type == ElementType::i32) {
    std::uint32_t value = 0;
    std::memcpy(&value, element.data(), 4);
    value = -value;
    std::memcpy(element.data(), &value, 4);
  } else {
    element.back() = char(element.back() ^ char(0x80));
  }
  return element;
}

/// What is wrong after our halo; empty when nothing is.
std::string case_fault(const json& c, const NdslArrays& arrays) {
  const int count = int(c.at("quantities").size()), n_x = c.at("n_x");
  const Index width = c.at("n_points"), cells_per_side = Index(c.at("layout")[0]);
  const Rank ranks = c.at("ranks");
  std::vector<Quantity> quantities;
  std::vector<TiledField> fields;
  for (int q = 0; q < count; ++q) fields.push_back(quantities.emplace_back(quantity_of(c, q, arrays)).field);
  TiledHaloOptions options;
  for (int y = n_x; y < count; ++y)
    options.vectors.push_back({{.field = y - (count - n_x), .along = 1}, {.field = y, .along = 0}});
  const Index n = fields[0].tiles[0].distribution.axis(fields[0].tile_dims[0]).period();
  EXPECT_EQ(n % cells_per_side, 0);
  const Tiling tiling = cubed_sphere(n);

  Plans plans;
  for (Rank r = 0; r < ranks; ++r) plans.push_back(plan_halo(tiling, fields, r, options));
  const PlanInterpreter interpreter(plans);
  if (!interpreter.fault().empty()) return interpreter.fault();
  // Every cell of every rank's memory has a number.
  const Index numbers = Index(1) << 24;
  const auto first_number = [&](Rank r, int q) { return 1 + (Index(r) * count + q) * numbers; };
  Memory memory = memory_for(plans, 0);
  const auto for_each_cell = [&](auto&& f) {
    for (Rank r = 0; r < ranks; ++r)
      for (int q = 0; q < count; ++q) {
        const int tile = int(r / (cells_per_side * cells_per_side)), slot = q * 6 + tile;
        Index i = 0;
        for_each_coordinate(fields[q].tiles[tile].distribution.local_extents(r), [&](const Indices& local) {
          f(r, q, quantities[q].index_of(r, local, width), memory[r][slot][i++]);
        });
      }
  };
  for_each_cell([&](Rank r, int q, Index at, Index& number) { number = first_number(r, q) + at; });
  interpreter.apply(memory);

  std::string fault;
  for_each_cell([&](Rank r, int q, Index at, Index& number) {
    const Index from = std::abs(number) - 1;
    const Quantity& source = quantities[from / numbers % count];
    const auto bytes = std::size_t(source.element_bytes());
    std::string value = source.before[from / numbers / count].substr(std::size_t(from % numbers) * bytes, bytes);
    if (number < 0) value = negated(value, source.type);
    if (fault.empty() && quantities[q].after[r].substr(std::size_t(at) * bytes, bytes) != value)
      fault = fmt::format("rank {} quantity {} element {} of its memory comes from rank {} element {}", r, q, at,
                          from / numbers / count, from % numbers);
  });
  return fault;
}

TEST(NdslGolden, HaloUpdates) {
  const json index = json::parse(read_ndsl("cube_index.json"));
  int cases = 0;
  for (const auto& [family, listed] : index.items()) {
    const NdslArrays arrays(listed.at("npz").get<std::string>());
    for (const json& c : listed.at("cases")) {
      if (c.at("op") == "sync") continue;  // joins shared points, which a halo never touches
      ++cases;
      EXPECT_EQ(case_fault(c, arrays), "") << family << " " << c.at("id") << ": " << c.at("note");
    }
  }
  EXPECT_GE(cases, 3);
}

}  // namespace
}  // namespace tranship
