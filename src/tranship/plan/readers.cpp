#include "tranship/plan/readers.hpp"

#include <algorithm>
#include <numeric>

namespace tranship {
namespace {

std::vector<Index> all_parts(const AxisParts& axis) {
  std::vector<Index> out(static_cast<std::size_t>(axis.parts()));
  std::iota(out.begin(), out.end(), Index(0));
  return out;
}

}  // namespace

std::vector<Index> parts_wanting(const AxisParts& target, const AxisParts& source, Index part, AxisMap map) {
  const Overlap& overlap = target.partition().overlap;
  const bool toroidal = overlap.left.edge == EdgePolicy::toroidal || overlap.right.edge == EdgePolicy::toroidal;
  const Index widest = std::max(overlap.left.width, overlap.right.width);
  // Overlap that wraps around more than once reaches every part.
  if (toroidal && widest >= target.period()) return all_parts(target);
  const Index turns = toroidal ? 1 : 0;

  std::vector<Index> out;
  for (const SliceFamily& f : source.stretches(part)) {
    const Interval cells = map.sign > 0 ? Interval{f.start - map.offset, f.start + f.length - map.offset}
                                        : Interval{map.offset - f.start - f.length + 1, map.offset - f.start + 1};
    for (Index turn = -turns; turn <= turns; ++turn) {
      const Index by = turn * target.period();
      const std::vector<Index> near =
          target.parts_touching({cells.lower + by - overlap.right.width, cells.upper + by + overlap.left.width},
                                map.sign * f.period, f.count);
      out.insert(out.end(), near.begin(), near.end());
      if (Index(out.size()) > 4 * target.parts()) return all_parts(target);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace tranship
