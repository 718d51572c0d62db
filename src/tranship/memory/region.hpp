// Detail: Region, a set of cells of a buffer, as disjoint boxes. Most regions are one box, which needs no allocation.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tranship/base/box.hpp>

namespace tranship {

/// Disjoint boxes of one number of dimensions; order does not matter. Operations on regions of different numbers of
/// dimensions throw `invalid_use`; the empty region goes with all. A box of no dimensions has one cell.
class Region {
 public:
  Region() = default;
  Region(const Box& box) : one_(box), has_one_(!box.empty()) {}
  static Region whole(const Indices& extents) { return Box::of_extents(extents); }
  /// [lower, upper) of one dimension.
  static Region interval(Index lower, Index upper) { return Box{{lower}, {upper}}; }
  /// The union; intervals may overlap, in any order. n log n.
  static Region intervals(std::vector<Interval> intervals);
  /// The union; boxes may overlap. n log n where few do.
  static Region boxes(const std::vector<Box>& boxes);

  /// None of them empty. In one dimension they ascend, with gaps between them.
  std::span<const Box> boxes() const& noexcept {
    return has_one_ ? std::span<const Box>(&one_, 1) : std::span<const Box>(many_);
  }
  /// Of a region that ends before them: a loop over them keeps them.
  std::vector<Box> boxes() const&& { return has_one_ ? std::vector<Box>{one_} : many_; }
  bool empty() const noexcept { return !has_one_ && many_.empty(); }
  /// Number of cells; throws `overflow`.
  Index count() const;
  bool contains(const Region& other) const;
  bool overlaps(const Region& other) const;
  bool contains(const Indices& at) const noexcept;

  // Linear in the number of boxes in one dimension; otherwise about log n for each box and each that it meets. Boxes
  // that make up a box are joined.
  friend Region operator|(const Region& a, const Region& b);
  friend Region operator&(const Region& a, const Region& b);
  friend Region operator-(const Region& a, const Region& b);
  /// The same cells. Regions of different numbers of dimensions differ.
  friend bool operator==(const Region& a, const Region& b);

 private:
  /// Takes disjoint boxes that are not empty.
  static Region joined(std::vector<Box> boxes);
  static Region of(std::vector<Box> boxes);

  Box one_;
  bool has_one_ = false;
  std::vector<Box> many_;  ///< where there are at least two
};

/// "[0,4)x[2,8) and 2 more": how messages name a region.
std::string to_string(const Region& region);

namespace detail {

// For boxes that are not empty and have the same number of dimensions.

inline bool overlap(const Box& a, const Box& b) noexcept {
  for (int d = 0; d < a.dims(); ++d)
    if (a.lower[d] >= b.upper[d] || b.lower[d] >= a.upper[d]) return false;
  return true;
}

inline bool within(const Box& inner, const Box& outer) noexcept {
  for (int d = 0; d < inner.dims(); ++d)
    if (inner.lower[d] < outer.lower[d] || inner.upper[d] > outer.upper[d]) return false;
  return true;
}

/// Whether two disjoint boxes touch in more than an edge.
inline bool share_face(const Box& a, const Box& b) noexcept {
  int touching = 0;
  for (int d = 0; d < a.dims(); ++d) {
    if (a.lower[d] > b.upper[d] || b.lower[d] > a.upper[d]) return false;
    touching += a.lower[d] == b.upper[d] || b.lower[d] == a.upper[d];
  }
  return touching == 1;
}

/// Makes `box` the smallest that has both.
inline void extend(Box& box, const Box& by) noexcept {
  for (int d = 0; d < box.dims(); ++d) {
    if (by.lower[d] < box.lower[d]) box.lower[d] = by.lower[d];
    if (by.upper[d] > box.upper[d]) box.upper[d] = by.upper[d];
  }
}

[[noreturn]] void refuse_dims(int a, int b);
inline void check_dims(const Box& a, const Box& b) {
  if (a.dims() != b.dims()) refuse_dims(a.dims(), b.dims());
}

}  // namespace detail
}  // namespace tranship
