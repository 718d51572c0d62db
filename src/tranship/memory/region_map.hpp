// RegionMap: a value for every cell of a box, kept as disjoint boxes of cells that have one value. What it costs grows
// with the number of distinct regions, never with the number of cells.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <tranship/memory/region.hpp>

namespace tranship {

/// `Value` is copied when a region is cut in two, and compared when two may be joined.
template <class Value>
class RegionMap {
 public:
  struct Entry {
    Box box;
    Value value;
  };

  RegionMap() = default;
  /// No cells at all when the box is empty.
  RegionMap(const Box& whole, Value value);

  const std::vector<Entry>& entries() const noexcept { return entries_; }

  /// Calls f(box, const value) for each entry's part of the region, cutting nothing.
  template <class F>
  void for_each(const Box& region, F&& f) const;
  /// Calls f(box, value&) for entries that make up exactly the region's cells, cutting those that reach out of it, and
  /// joins neighbours that have become equal.
  template <class F>
  void update(const Box& region, F&& f);
  template <class F>
  void for_each(const Region& region, F&& f) const {
    for (const Box& box : region.boxes()) for_each(box, f);
  }
  template <class F>
  void update(const Region& region, F&& f) {
    for (const Box& box : region.boxes()) update(box, f);
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace tranship
