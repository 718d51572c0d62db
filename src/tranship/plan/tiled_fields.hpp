// Private: Fields on a tiling, as planners need them: which field continues a component of a vector beyond an edge, and
// how the dimensions of its array continue there.
#pragma once

#include <span>
#include <vector>

#include <tranship/plan/halo.hpp>

namespace tranship {

/// The slot in which another slot's index space continues, and how the coordinates of each dimension continue there.
struct TiledImage {
  int source_slot = 0;
  ElementMap map = ElementMap::copy;
  std::vector<int> source_dims;
  std::vector<bool> tiled;  ///< true for dimensions that the tiling continues
  std::vector<int> signs;   ///< of tiled dimensions
  Indices offsets;          ///< of tiled dimensions
};

class TiledFields {
 public:
  /// Throws `invalid_use` for vectors that do not name each dimension once, for dimensions of a tile that an array does
  /// not have, and for edges that are not open; `mismatch` for arrays that do not have the extents of their tiles;
  /// `unsupported` for indexed arrays. Keeps references to its arguments.
  TiledFields(const Tiling& tiling, std::span<const TiledField> fields,
              const std::vector<std::vector<VectorField>>& vectors);

  int slot(int field, int tile) const noexcept { return field * tiling_.tiles() + tile; }
  std::vector<const ArraySpec*> slots() const;
  /// Returns how field `field` of tile `tile` continues on tile `other`, to which `map` leads. Throws `invalid_use` if
  /// the field there counts other points or cannot be negated, and `mismatch` if its elements or extents differ.
  TiledImage image(int field, int tile, int other, const IndexMap& map) const;

 private:
  /// The vector of which a field is a component, and the component's dimension; -1 for a scalar.
  struct Component {
    int vector = -1;
    int dim = -1;
  };
  const Tiling& tiling_;
  std::span<const TiledField> fields_;
  std::vector<Component> components_;
  std::vector<std::vector<int>> fields_along_;  ///< by vector and tile dimension
};

}  // namespace tranship
