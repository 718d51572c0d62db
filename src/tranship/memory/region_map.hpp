// RegionMap: a value for every cell of a box, kept as disjoint boxes of cells that have one value. What it costs grows
// with the number of distinct regions, never with the number of cells.
//
// Invariant: no two or more entries of one value make up a box; so a map whose values are all equal has one entry.
#pragma once

#include <iterator>
#include <map>
#include <utility>

#include <tranship/memory/region.hpp>

namespace tranship {

/// `Value` is copied when a region is cut in two, and compared when two may be joined. In one dimension a call costs
/// log(entries) + those that it touches; otherwise it looks at all entries.
template <class Value>
class RegionMap {
 public:
  RegionMap() = default;
  /// No cells at all when the box is empty.
  RegionMap(const Box& whole, Value value) {
    if (!whole.empty()) entries_.emplace(key_of(whole), Entry{whole, std::move(value), false});
  }

  std::size_t entry_count() const noexcept { return entries_.size(); }

  /// The value of all cells, when there is one entry; else null.
  Value* only() noexcept { return entries_.size() == 1 ? &entries_.begin()->second.value : nullptr; }
  const Value* only() const noexcept { return entries_.size() == 1 ? &entries_.begin()->second.value : nullptr; }

  /// Calls f(box, const value) for each entry.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [key, entry] : entries_) f(entry.box, entry.value);
  }
  /// Calls f(box, const value) for each entry's part of the region, cutting nothing. Cells beyond the map's are left
  /// out.
  template <class F>
  void for_each(const Box& region, F&& f) const {
    if (!has_cells(region)) return;
    for (auto at = first_near(entries_, region); is_near(entries_, at, region); ++at) {
      const Box& box = at->second.box;
      if (detail::within(box, region))
        f(box, at->second.value);
      else if (detail::overlap(box, region))
        f(intersect(box, region), at->second.value);
    }
  }
  template <class F>
  void for_each(const Region& region, F&& f) const {
    for (const Box& box : region.boxes()) for_each(box, f);
  }

  /// Calls f(box, value&) for entries that make up exactly the region's cells, cutting those that reach out of it, and
  /// joins neighbours that have become equal. Cells beyond the map's are left out. When f throws, cells have the values
  /// that it gave them until then.
  template <class F>
  void update(const Box& region, F&& f) {
    if (!has_cells(region)) return;
    if (entries_.size() == 1 && entries_.begin()->second.box == region) {
      f(region, entries_.begin()->second.value);
      return;
    }
    const Box touched = cut_out(region);
    At first = entries_.end();
    bool equal = true;
    for (At at = first_near(entries_, region); is_near(entries_, at, region); ++at) {
      if (!detail::within(at->second.box, region)) continue;
      f(std::as_const(at->second.box), at->second.value);
      if (first == entries_.end())
        first = at;
      else
        equal = equal && at->second.value == first->second.value;
    }
    if (first == entries_.end()) return;
    if (equal) {
      Box box = first->second.box;
      for (At at = first; is_near(entries_, at, region); ++at)
        if (detail::within(at->second.box, region)) detail::extend(box, at->second.box);
      absorb(first, box);
    }
    // An entry that found nobody to join need not ask again: what others make of themselves has the same cells.
    for (At at = first_near(entries_, touched); is_near(entries_, at, touched); ++at)
      if (std::exchange(at->second.is_rest, false) || detail::overlap(at->second.box, region)) at = join(at);
  }
  template <class F>
  void update(const Region& region, F&& f) {
    for (const Box& box : region.boxes()) update(box, f);
  }

 private:
  struct Entry {
    Box box;
    Value value;
    bool is_rest = false;  ///< what a cut has left, which may go with others than before
  };
  // By the lower end in dimension 0. A tree, so that cutting one of a million entries moves none of the others.
  using Entries = std::multimap<Index, Entry>;
  using At = typename Entries::iterator;

  static Index key_of(const Box& box) { return box.dims() > 0 ? box.lower[0] : 0; }

  bool has_cells(const Box& region) const {
    if (entries_.empty()) return false;
    detail::check_dims(entries_.begin()->second.box, region);
    return !region.empty();
  }

  /// From here on are all entries that overlap or touch `box`: in one dimension the entry before the first that begins
  /// in it.
  template <class Map>
  static auto first_near(Map& entries, const Box& box) {
    if (box.dims() != 1) return entries.begin();
    const auto at = entries.lower_bound(box.lower[0]);
    return at == entries.begin() ? at : std::prev(at);
  }
  /// False at the end, and where all others lie behind `box`.
  template <class Map, class Iterator>
  static bool is_near(Map& entries, const Iterator& at, const Box& box) {
    return at != entries.end() && (box.dims() == 0 || at->first <= box.upper[0]);
  }

  /// Cuts entries so that none reaches out of the region. Returns a box around it and all that were cut.
  Box cut_out(const Box& region) {
    Box touched = region;
    for (At at = first_near(entries_, region); is_near(entries_, at, region);) {
      const At here = at++;
      const Box box = here->second.box;
      if (!detail::overlap(box, region) || detail::within(box, region)) continue;
      Entries outside;
      for (const Box& piece : subtract(box, region))
        outside.emplace(key_of(piece), Entry{piece, here->second.value, true});
      place(here, intersect(box, region));
      entries_.merge(outside);
      detail::extend(touched, box);
    }
    return touched;
  }

  /// Gives an entry another box.
  At place(At at, const Box& box) {
    if (at->first == key_of(box)) {
      at->second.box = box;
      return at;
    }
    auto node = entries_.extract(at);
    node.key() = key_of(box);
    node.mapped().box = box;
    return entries_.insert(std::move(node));
  }

  /// The entry becomes `box`, and those that lie within it vanish.
  At absorb(At at, const Box& box) {
    for (At other = first_near(entries_, box); is_near(entries_, other, box);) {
      const At here = other++;
      if (here != at && detail::within(here->second.box, box)) entries_.erase(here);
    }
    return place(at, box);
  }

  /// Joins an entry with others as long as some make up a box with it. Returns where it is then.
  At join(At at) {
    for (;;) {
      Box box;
      const auto joins = [&](const Entry& other) {
        if (!detail::share_face(other.box, at->second.box) || !(other.value == at->second.value)) return false;
        box = at->second.box;
        detail::extend(box, other.box);
        return grow(box, at->second.value);
      };
      At other = first_near(entries_, at->second.box);
      while (is_near(entries_, other, at->second.box) && !joins(other->second)) ++other;
      if (!is_near(entries_, other, at->second.box)) return at;
      at = absorb(at, box);
    }
  }

  /// Extends `box` until no entry reaches out of it; false when one has another value.
  bool grow(Box& box, const Value& value) const {
    for (bool grew = true; grew;) {
      grew = false;
      for (auto at = first_near(entries_, box); is_near(entries_, at, box); ++at) {
        const Entry& entry = at->second;
        if (!detail::overlap(entry.box, box)) continue;
        if (!(entry.value == value)) return false;
        if (detail::within(entry.box, box)) continue;
        detail::extend(box, entry.box);
        grew = true;
      }
    }
    return true;
  }

  Entries entries_;
};

}  // namespace tranship
