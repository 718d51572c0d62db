#include "support/ndsl_cube.hpp"

#include <algorithm>

namespace tranship::test {

using nlohmann::json;

int ndsl_tile_dim(const std::string& dim) {
  return dim[0] == 'j' ? 0 : dim[0] == 'i' ? 1 : -1;
}

Index NdslQuantity::index_of(Rank rank, const Indices& local, Index width) const {
  Index out = 0;
  for (int d = 0; d < local.size(); ++d) {
    const bool tiled = std::count(field.tile_dims.begin(), field.tile_dims.end(), d) > 0;
    out = out * shapes[rank][d] + origins[rank][d] + local[d] - (tiled ? width : 0);
  }
  return out;
}

NdslQuantity ndsl_quantity(const json& c, int number, const NdslArrays& arrays, int step) {
  const json& q = c.at("quantities")[number];
  const auto dims = q.at("dims").get<std::vector<std::string>>();
  const Index layout = c.at("layout")[0], width = c.at("n_points");
  const Rank ranks = c.at("ranks");
  NdslQuantity out;
  out.dims = dims;
  const std::string dtype = q.at("dtype");
  out.type = dtype == "<f8" ? ElementType::f64 : dtype == "<f4" ? ElementType::f32 : ElementType::i32;

  Indices extents, grid_extents;
  std::vector<Partition> partitions;
  std::vector<int> order{int(dims.size())};
  out.field.tile_dims.resize(2);
  for (int d = 0; d < int(dims.size()); ++d) {
    const int along = ndsl_tile_dim(dims[d]);
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
    out.extents.push_back(Indices(own.at("extent").get<std::vector<Index>>()));
    const std::string suffix = step == 1 ? "" : std::to_string(step);
    out.before.push_back(bytes_of("_before" + suffix));
    out.after.push_back(bytes_of("_after" + suffix));
  }
  return out;
}

Tiling ndsl_tiling(const NdslQuantity& any) {
  return cubed_sphere(any.field.tiles[0].distribution.axis(any.field.tile_dims[0]).period());
}

std::vector<std::vector<VectorField>> ndsl_vectors(const json& c) {
  const int count = int(c.at("quantities").size()), n_x = c.at("n_x");
  std::vector<std::vector<VectorField>> out;
  for (int y = n_x; y < count; ++y) out.push_back({{.field = y - (count - n_x), .along = 1}, {.field = y, .along = 0}});
  return out;
}

}  // namespace tranship::test
