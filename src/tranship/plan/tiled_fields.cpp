#include "tranship/plan/tiled_fields.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

TiledFields::TiledFields(const Tiling& tiling, std::span<const TiledField> fields,
                         const std::vector<std::vector<VectorField>>& vectors)
    : tiling_(tiling), fields_(fields), components_(fields.size()) {
  const int tiles = tiling.tiles(), tile_dims = tiling.dims();
  for (int v = 0; v < int(vectors.size()); ++v) {
    if (int(vectors[v].size()) != tile_dims)
      throw_error(ErrorCode::invalid_use, "vector {} has {} on a tiling of {}", v,
                  amount(vectors[v].size(), "component"), amount(tile_dims, "dimension"));
    std::vector<int>& along = fields_along_.emplace_back(tile_dims, -1);
    for (const auto& [f, k] : vectors[v]) {
      if (f < 0 || f >= int(fields.size()))
        throw_error(ErrorCode::invalid_use, "vector {} names field {}, there are {}", v, f, fields.size());
      if (k < 0 || k >= tile_dims)
        throw_error(ErrorCode::invalid_use, "field {} of vector {} points along tile dimension {}, there are {}", f, v,
                    k, tile_dims);
      if (components_[f].vector >= 0)
        throw_error(ErrorCode::invalid_use, "field {} is a component of vector {} and of vector {}", f,
                    components_[f].vector, v);
      if (along[k] >= 0)
        throw_error(ErrorCode::invalid_use, "fields {} and {} of vector {} both point along tile dimension {}",
                    along[k], f, v, k);
      along[k] = f;
      components_[f] = {v, k};
    }
  }
  for (int f = 0; f < int(fields.size()); ++f) {
    const TiledField& field = fields[f];
    if (int(field.tiles.size()) != tiles)
      throw_error(ErrorCode::invalid_use, "field {} has {}, the tiling has {}", f, amount(field.tiles.size(), "array"),
                  amount(tiles, "tile"));
    if (int(field.tile_dims.size()) != tile_dims)
      throw_error(ErrorCode::invalid_use, "field {} names {}, the tiling has {}", f,
                  amount(field.tile_dims.size(), "tile dimension"), tile_dims);
    for (int t = 0; t < tiles; ++t) {
      const Distribution& array = field.tiles[t].distribution;
      if (array.is_indexed()) throw_error(ErrorCode::unsupported, "field {} on tile {} is indexed", f, t);
      unsigned seen = 0;
      for (int k = 0; k < tile_dims; ++k) {
        const int d = field.tile_dims[k];
        if (d < 0 || d >= array.dims() || (seen >> d & 1))
          throw_error(ErrorCode::invalid_use, "field {} names dimension {} of an array of {} as tile dimension {}", f,
                      d, array.dims(), k);
        seen |= 1u << d;
        if (array.axis(d).period() != tiling.extents(t)[k])
          throw_error(ErrorCode::mismatch, "field {} has {} in tile dimension {} of tile {}, the tiling has {}", f,
                      amount(array.axis(d).period(), "cell"), k, t, tiling.extents(t)[k]);
        const Overlap& overlap = array.axis(d).partition().overlap;
        for (const OverlapSide& side : {overlap.left, overlap.right})
          if (side.width > 0 && side.edge != EdgePolicy::open)
            throw_error(ErrorCode::invalid_use,
                        "field {} has edge policy {} in tile dimension {}; a tiling continues only open edges", f,
                        name_of(side.edge), k);
      }
    }
  }
}

std::vector<const ArraySpec*> TiledFields::slots() const {
  std::vector<const ArraySpec*> out;
  for (const TiledField& field : fields_)
    for (const ArraySpec& spec : field.tiles) out.push_back(&spec);
  return out;
}

TiledImage TiledFields::image(int f, int t, int other, const IndexMap& map) const {
  const TiledField& field = fields_[f];
  const Distribution& array = field.tiles[t].distribution;
  int source_field = f, sign = 1;
  if (components_[f].vector >= 0) {
    const VectorComponent from = vector_component(map, components_[f].dim);
    source_field = fields_along_[components_[f].vector][from.component];
    sign = from.sign;
  }
  const TiledField& source = fields_[source_field];
  const ArraySpec& source_spec = source.tiles[other];
  if (source_spec.type != field.tiles[t].type)
    throw_error(ErrorCode::mismatch, "vector components {} and {} have elements {} and {}", f, source_field,
                name_of(field.tiles[t].type), name_of(source_spec.type));
  if (sign < 0 && source_spec.type == ElementType::bool8)
    throw_error(ErrorCode::invalid_use, "field {} of type {} cannot be negated across an edge", f,
                name_of(source_spec.type));
  if (source_spec.distribution.dims() != array.dims())
    throw_error(ErrorCode::mismatch, "vector components {} and {} have {} and {}", f, source_field, array.dims(),
                amount(source_spec.distribution.dims(), "dimension"));
  TiledImage image{.source_slot = slot(source_field, other),
                   .map = sign < 0 ? ElementMap::negate : ElementMap::copy,
                   .source_dims = std::vector<int>(std::size_t(array.dims())),
                   .tiled = std::vector<bool>(std::size_t(array.dims()), false),
                   .signs = std::vector<int>(std::size_t(array.dims()), 1),
                   .offsets = Indices::filled(array.dims(), 0)};
  // The dimensions that are not the tile's correspond in order.
  std::vector<int> others_target, others_source;
  for (int d = 0; d < array.dims(); ++d) {
    if (std::find(field.tile_dims.begin(), field.tile_dims.end(), d) == field.tile_dims.end())
      others_target.push_back(d);
    if (std::find(source.tile_dims.begin(), source.tile_dims.end(), d) == source.tile_dims.end())
      others_source.push_back(d);
  }
  for (std::size_t i = 0; i < others_target.size(); ++i) image.source_dims[others_target[i]] = others_source[i];
  for (int k = 0; k < tiling_.dims(); ++k) {
    const int d = field.tile_dims[k], e = source.tile_dims[map.image_dim(k)];
    const Points points = array.axis(d).partition().points;
    if (source_spec.distribution.axis(e).partition().points != points)
      throw_error(ErrorCode::invalid_use,
                  "field {} counts {} in tile dimension {}, but across the edge to tile {} its neighbour counts {}", f,
                  points == Points::cells ? "cells" : "interfaces", k, other,
                  points == Points::cells ? "interfaces" : "cells");
    image.tiled[d] = true;
    image.source_dims[d] = e;
    image.signs[d] = map.sign(k);
    image.offsets[d] = map.apply(k, 0, points);
  }
  for (std::size_t i = 0; i < others_target.size(); ++i)
    if (source_spec.distribution.extents()[others_source[i]] != array.extents()[others_target[i]])
      throw_error(ErrorCode::mismatch, "dimension {} of field {} has {}, of field {} {}", others_target[i], f,
                  amount(array.extents()[others_target[i]], "cell"), source_field,
                  source_spec.distribution.extents()[others_source[i]]);
  return image;
}

}  // namespace tranship
