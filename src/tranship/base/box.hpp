// Detail: Boxes, half-open products of intervals, and the operations on them that planning needs.
#pragma once

#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// The half-open interval [lower, upper). Empty when upper <= lower.
struct Interval {
  Index lower = 0;
  Index upper = 0;

  Index length() const noexcept { return upper > lower ? upper - lower : 0; }
  bool empty() const noexcept { return upper <= lower; }
  bool contains(Index i) const noexcept { return i >= lower && i < upper; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

constexpr Interval intersect(const Interval& a, const Interval& b) noexcept {
  return {a.lower > b.lower ? a.lower : b.lower, a.upper < b.upper ? a.upper : b.upper};
}

/// A product of intervals, one per dimension: [lower, upper) in each.
struct Box {
  Indices lower;
  Indices upper;

  static Box of_extents(const Indices& extents) { return {Indices::filled(extents.size(), 0), extents}; }

  int dims() const noexcept { return lower.size(); }
  Interval operator[](int d) const noexcept { return {lower[d], upper[d]}; }
  Indices extents() const;
  bool empty() const noexcept;
  /// Returns the number of cells; throws `overflow`.
  Index count() const { return checked_product(extents()); }
  bool contains(const Indices& at) const noexcept;
  friend bool operator==(const Box&, const Box&) = default;
};

Box intersect(const Box& a, const Box& b);
Box shifted(const Box& box, const Indices& by);

/// Returns disjoint boxes that cover `a` without `b`: at most two per dimension, the low side before the high side,
/// dimension 0 first.
std::vector<Box> subtract(const Box& a, const Box& b);
/// Returns disjoint boxes that cover the union of `boxes` without `hole`.
std::vector<Box> disjoint_union(const std::vector<Box>& boxes, const Box& hole);

/// Returns one box for each way to choose one interval from every list; the last list varies fastest.
std::vector<Box> products(const std::vector<std::vector<Interval>>& axes);

std::string to_string(const Box& box);

}  // namespace tranship
