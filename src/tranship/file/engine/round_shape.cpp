#include "tranship/file/engine/round_shape.hpp"

#include <algorithm>
#include <cmath>

namespace tranship {
namespace {

// Costs, in bytes that could be moved instead. A stretch that is read fetches two pages in part, which is one page more
// than its bytes; a stretch that is written leaves two pages that are written, and perhaps read, again.
constexpr double call_bytes = 4096;
constexpr double block_bytes = 8192;
constexpr double open_bytes = 24'576;
// Growth ends when it saves less than this per doubling, but not before a round is worth its barriers.
constexpr double gain_min = 0.004;
constexpr Index round_bytes_wanted = Index(4) << 20;

/// Returns how many cells of a part, along one dimension, an interval of `extent` cells holds.
Index share_of(const StoredSide& side, int d, Index extent, Index whole) {
  const Index part = std::max<Index>(1, side.part_extents[d]);
  if (extent >= whole) return part;  // with all of its overlap
  if (!side.dealt[d]) return std::min(extent, part);
  return std::clamp<Index>(static_cast<Index>(std::ceil(static_cast<double>(extent) * static_cast<double>(part) /
                                                        static_cast<double>(whole))),
                           1, part);
}

double side_overhead(const RoundShapeOptions& options, const StoredSide& side, const Indices& shape,
                     double stretch_bytes) {
  double stretch = 1, in_part = 1, parts = 1;
  bool is_joined = true;
  for (int k = shape.size() - 1; k >= 0; --k) {
    const int d = static_cast<int>(side.order[k]);
    const Index share = share_of(side, d, shape[d], options.extents[d]);
    in_part *= static_cast<double>(share);
    if (is_joined) stretch *= static_cast<double>(share);
    is_joined = is_joined && share == std::max<Index>(1, side.part_extents[d]);
    const Index met = ceil_divide(shape[d], std::max<Index>(1, side.part_extents[d]));
    parts *= static_cast<double>(side.dealt[d] ? std::min(side.parts[d], shape[d]) : std::min(side.parts[d], met));
  }
  const double part_bytes = block_bytes + (parts > static_cast<double>(options.open_max) ? open_bytes : 0);
  const auto width = static_cast<double>(options.width);
  return stretch_bytes / (stretch * width) + part_bytes / (in_part * width);
}

double cells_of(const Indices& shape) {
  double out = 1;
  for (const Index extent : shape) out *= static_cast<double>(extent);
  return out;
}

/// Returns the next extents along a dimension that may make stretches longer.
std::vector<Index> next_extents(const RoundShapeOptions& options, int d, Index extent) {
  const Index whole = options.extents[d];
  std::vector<Index> out{std::min(whole, 2 * extent)};
  for (const StoredSide* side : {&options.source, &options.target}) {
    if (!side->dealt[d]) continue;
    const double wanted = 2.0 * static_cast<double>(share_of(*side, d, extent, whole)) * static_cast<double>(whole) /
                          static_cast<double>(std::max<Index>(1, side->part_extents[d]));
    out.push_back(std::clamp<Index>(static_cast<Index>(std::min(wanted, static_cast<double>(whole))), extent, whole));
  }
  return out;
}

/// Grows each dimension as far as there is room, beginning with the fastest of the source.
void fill_up(const RoundShapeOptions& options, Index cells_max, Indices& shape) {
  for (int k = shape.size() - 1; k >= 0; --k) {
    const int d = static_cast<int>(options.source.order[k]);
    const auto room =
        static_cast<Index>(static_cast<double>(cells_max) * static_cast<double>(shape[d]) / cells_of(shape));
    shape[d] = std::clamp<Index>(room, shape[d], options.extents[d]);
  }
}

/// Grows a shape where that saves most, as long as it saves enough.
Indices grown(const RoundShapeOptions& options, Indices shape) {
  const auto cells_max = static_cast<double>(options.cells_max);
  for (double overhead = round_overhead(options, shape);;) {
    Indices best;
    double best_gain = 0, best_overhead = 0;
    for (int d = 0; d < shape.size(); ++d)
      for (Index extent : next_extents(options, d, shape[d])) {
        extent = std::min(extent, static_cast<Index>(cells_max * static_cast<double>(shape[d]) / cells_of(shape)));
        if (extent <= shape[d]) continue;
        Indices larger = shape;
        larger[d] = extent;
        const double larger_overhead = round_overhead(options, larger);
        const double gain = (overhead - larger_overhead) / std::log2(cells_of(larger) / cells_of(shape));
        if (gain <= best_gain) continue;
        best = larger;
        best_gain = gain;
        best_overhead = larger_overhead;
      }
    if (best_gain < gain_min) return shape;
    shape = best;
    overhead = best_overhead;
  }
}

}  // namespace

double round_overhead(const RoundShapeOptions& options, const Indices& shape) {
  return side_overhead(options, options.source, shape, double(page_bytes) + call_bytes) +
         side_overhead(options, options.target, shape, 2.0 * page_bytes + call_bytes);
}

Indices round_shape(const RoundShapeOptions& options) {
  Indices least = Indices::filled(options.extents.size(), 1);
  if (checked_product(options.extents) == 0) return least;
  for (int d = 0; d < options.extents_min.size(); ++d)
    least[d] = std::clamp<Index>(options.extents_min[d], 1, options.extents[d]);
  // Stretches become much longer at once when they join, so growth also begins from whole rows of either side.
  Indices best = grown(options, least);
  for (const StoredSide* side : {&options.source, &options.target}) {
    Indices shape = least;
    for (int k = shape.size() - 1; k >= 0; --k) {
      const auto d = static_cast<int>(side->order[k]);
      shape[d] = options.extents[d];
      if (cells_of(shape) > static_cast<double>(options.cells_max)) break;
      const Indices candidate = grown(options, shape);
      if (round_overhead(options, candidate) < round_overhead(options, best)) best = candidate;
    }
    // Growth also begins from whole parts.
    for (int d = 0; d < shape.size(); ++d)
      shape[d] = std::max(least[d], side->dealt[d] ? options.extents[d] : side->part_extents[d]);
    for (Index& extent : shape) extent = std::max<Index>(1, extent);
    if (cells_of(shape) > static_cast<double>(options.cells_max)) continue;
    const Indices candidate = grown(options, shape);
    if (round_overhead(options, candidate) < round_overhead(options, best)) best = candidate;
  }
  fill_up(options, std::min(options.cells_max, round_bytes_wanted / options.width), best);
  return best;
}

}  // namespace tranship
