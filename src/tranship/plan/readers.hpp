// Private: Finds the parts that may read what a part owns, from the part's cells instead of by asking all parts.
#pragma once

#include <tranship/plan/axis_match.hpp>

namespace tranship {

/// How the coordinates of a target continue in those of its source: y = sign * x + offset.
struct AxisMap {
  int sign = 1;
  Index offset = 0;
};

/// Returns the parts of `target` that may store cells of source part `part`, overlap included, in increasing order. No
/// other part stores any. Beyond its ends the target continues by its edge policies.
std::vector<Index> parts_wanting(const AxisParts& target, const AxisParts& source, Index part, AxisMap map = {});

}  // namespace tranship
