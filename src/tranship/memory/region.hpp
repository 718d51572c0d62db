// Detail: Region, a set of cells of a buffer, as disjoint boxes. Most regions are one box, which needs no allocation.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tranship/base/box.hpp>

namespace tranship {

/// A set of cells as disjoint boxes of one number of dimensions; their order has no meaning. Operations on regions of
/// different numbers of dimensions throw `invalid_use`; the empty region fits all. A box of no dimensions has one cell.
class Region {
 public:
  Region() = default;
  Region(const Box& box) : one_(box), has_one_(!box.empty()) {}
  static Region whole(const Indices& extents) { return Box::of_extents(extents); }
  /// [lower, upper) in one dimension.
  static Region interval(Index lower, Index upper) { return Box{{lower}, {upper}}; }
  /// The union of intervals in any order, which may overlap. O(n log n).
  static Region intervals(std::vector<Interval> intervals);
  /// The union of boxes, which may overlap. O(n log n) when few do.
  static Region boxes(const std::vector<Box>& boxes);

  /// The boxes, none of them empty. In one dimension they ascend, with gaps between them.
  std::span<const Box> boxes() const& noexcept {
    return has_one_ ? std::span<const Box>(&one_, 1) : std::span<const Box>(many_);
  }
  /// For a temporary region: returns a copy, so that a loop over the boxes of a temporary is safe.
  std::vector<Box> boxes() const&& { return has_one_ ? std::vector<Box>{one_} : many_; }
  bool empty() const noexcept { return !has_one_ && many_.empty(); }
  /// Number of cells. Throws `overflow`.
  Index count() const;
  bool contains(const Region& other) const;
  bool overlaps(const Region& other) const;
  bool contains(const Indices& at) const noexcept;

  // Union, intersection, difference. In one dimension linear in the number of boxes; otherwise about log n for each box
  // and for each box that it meets. Boxes that form a larger box are joined.
  friend Region operator|(const Region& a, const Region& b);
  friend Region operator&(const Region& a, const Region& b);
  friend Region operator-(const Region& a, const Region& b);
  /// Compares cells, not boxes. Non-empty regions of different numbers of dimensions differ.
  friend bool operator==(const Region& a, const Region& b);

 private:
  /// Takes disjoint boxes that are not empty, and joins them.
  static Region joined(std::vector<Box> boxes);
  static Region of(std::vector<Box> boxes);

  Box one_;
  bool has_one_ = false;
  std::vector<Box> many_;  ///< used for two or more boxes
};

/// "[0,4)x[2,8) and 2 more": the name of a region in messages.
std::string to_string(const Region& region);

namespace detail {

// The functions below take boxes that are not empty and have the same number of dimensions.

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

/// Returns true when two disjoint boxes share a face, and not only an edge or a corner.
inline bool share_face(const Box& a, const Box& b) noexcept {
  int touching = 0;
  for (int d = 0; d < a.dims(); ++d) {
    if (a.lower[d] > b.upper[d] || b.lower[d] > a.upper[d]) return false;
    touching += a.lower[d] == b.upper[d] || b.lower[d] == a.upper[d];
  }
  return touching == 1;
}

/// Extends `box` to the smallest box that contains both.
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
