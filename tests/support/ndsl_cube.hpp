// NDSL's halo updates on cubes: what every rank held before and after (cube_index.json).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tranship/plan/halo.hpp>

#include "support/ndsl_cases.hpp"

namespace tranship::test {

/// 0 for the dimensions along y, 1 for those along x, -1 for all others.
int ndsl_tile_dim(const std::string& dim);

/// One quantity of a case: its field, and what every rank holds of it in memory with room around what it computes. The
/// field has an overlap of the points that the case exchanges.
struct NdslQuantity {
  TiledField field;
  ElementType type = ElementType::f64;
  std::vector<std::string> dims;
  std::vector<Indices> shapes, origins, extents;  ///< by rank
  std::vector<std::string> before, after;         ///< by rank; only the first of several steps

  Index element_bytes() const { return size_bytes(type); }
  /// Where a local cell of our array, whose overlap is `width` wide in the dimensions of the tile, lies in memory.
  Index index_of(Rank rank, const Indices& local, Index width) const;
};
/// `step` counts from 1.
NdslQuantity ndsl_quantity(const nlohmann::json& c, int number, const NdslArrays& arrays, int step = 1);

/// The tiling of a case.
Tiling ndsl_tiling(const NdslQuantity& any);
/// Pairs of the first n_x quantities and the rest, as vectors; the last ones of the first are x components.
std::vector<std::vector<VectorField>> ndsl_vectors(const nlohmann::json& c);

}  // namespace tranship::test
