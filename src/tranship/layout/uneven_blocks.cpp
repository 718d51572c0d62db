#include "tranship/layout/uneven_blocks.hpp"

#include <algorithm>
#include <cmath>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// Returns the size of an edge part, or 0 if the search finds none.
Index edge_size(Index extent, Index interior_parts, double ratio) {
  const auto fits = [&](Index edge) { return (extent - 2 * edge) % interior_parts == 0; };
  const Index largest = (extent - interior_parts) / 2;  // leaves a cell for each interior part
  const double ideal = static_cast<double>(extent) / (2 + static_cast<double>(interior_parts) / ratio);
  const auto start = static_cast<Index>(std::nearbyint(ideal));
  // Sizes that fit come every interior_parts cells (or half of that), so one period in each direction is enough.
  for (Index edge = std::min(start, largest), tried = 0; edge >= 1 && tried < interior_parts; --edge, ++tried)
    if (fits(edge)) return edge;
  for (Index edge = std::max<Index>(start, 0) + 1, tried = 0; edge <= largest && tried < interior_parts;
       ++edge, ++tried)
    if (fits(edge)) return edge;
  return 0;
}

}  // namespace

std::vector<Index> uneven_block_bounds(Index extent, Index parts, double edge_interior_ratio) {
  if (extent < 0 || parts < 1)
    throw_error(ErrorCode::invalid_use, "cannot cut {} into {}", amount(extent, "cell"), amount(parts, "part"));
  if (!(edge_interior_ratio > 0))
    throw_error(ErrorCode::invalid_use, "the ratio of edge to interior parts is {}: it must be above 0",
                edge_interior_ratio);
  if (extent % 2 != 0 && parts % 2 == 0)
    throw_error(ErrorCode::invalid_use, "an odd extent of {} has no symmetric cut into an even number of {}",
                amount(extent, "cell"), amount(parts, "part"));
  Index edge = extent / parts;
  Index interior = edge;
  if (parts > 2) {
    edge = edge_size(extent, parts - 2, edge_interior_ratio);
    if (edge == 0)
      throw_error(ErrorCode::invalid_use, "no symmetric cut of {} into {} is near an edge ratio of {}",
                  amount(extent, "cell"), amount(parts, "part"), edge_interior_ratio);
    interior = (extent - 2 * edge) / (parts - 2);
  }
  std::vector<Index> bounds{0};
  for (Index part = 0; part < parts; ++part)
    bounds.push_back(bounds.back() + (part == 0 || part == parts - 1 ? edge : interior));
  return bounds;
}

}  // namespace tranship
