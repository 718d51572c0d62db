// Region: a set of cells of a buffer, as disjoint boxes; and RegionMap: a value for every cell, kept by boxes.
#pragma once

#include <string>
#include <vector>

#include <tranship/base/box.hpp>

namespace tranship {

/// Disjoint boxes of one number of dimensions; order does not matter.
class Region {
 public:
  Region() = default;
  Region(Box box);
  static Region whole(const Indices& extents) { return Box::of_extents(extents); }
  /// [lower, upper) of one dimension.
  static Region interval(Index lower, Index upper) { return Box{{lower}, {upper}}; }
  static Region intervals(const std::vector<Interval>& intervals);
  /// The union; boxes may overlap.
  static Region boxes(const std::vector<Box>& boxes);

  const std::vector<Box>& boxes() const noexcept { return boxes_; }
  bool empty() const noexcept { return boxes_.empty(); }
  /// Number of cells; throws `overflow`.
  Index count() const;
  bool contains(const Region& other) const;
  bool overlaps(const Region& other) const;
  bool contains(const Indices& at) const noexcept;

  friend Region operator|(const Region& a, const Region& b);
  friend Region operator&(const Region& a, const Region& b);
  friend Region operator-(const Region& a, const Region& b);
  /// The same cells.
  friend bool operator==(const Region& a, const Region& b);

 private:
  void join();
  std::vector<Box> boxes_;
};

/// "[0,4)x[2,8) and 2 more": how messages name a region.
std::string to_string(const Region& region);

}  // namespace tranship
