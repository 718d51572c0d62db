// RegionMap: a value for every cell of a box, kept as disjoint boxes of cells that have one value. What it costs grows
// with the number of distinct regions, never with the number of cells.
//
// Invariant: no two or more entries of one value make up a box; so a map whose values are all equal has one entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <tranship/memory/region.hpp>

namespace tranship {

/// `Value` is copied when a region is cut in two, and compared when two may be joined. In one dimension a call costs
/// log(entries) + those that it touches; otherwise it looks at all that lie beside the region along dimension 0.
template <class Value>
class RegionMap {
 public:
  RegionMap() = default;
  /// No cells at all when the box is empty.
  RegionMap(const Box& whole, Value value) {
    length_max_ = length_of(whole);
    if (!whole.empty()) entries_.emplace(key_of(whole), Entry{whole, std::move(value), false});
  }

  std::size_t entry_count() const noexcept { return entries_.size(); }

  /// The value of all cells of a region's boxes, when one entry has them; else null. Cells beyond the map's are left
  /// out.
  const Value* only(std::span<const Box> boxes) const noexcept {
    if (entries_.size() == 1) return &entries_.begin()->second.value;
    if (boxes.size() != 1) return nullptr;
    const Box& box = boxes[0];
    for (auto at = first_near(box); is_near(at, box); ++at)
      if (detail::within(box, at->second.box)) return &at->second.value;
    return nullptr;
  }

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
    for (auto at = first_near(region); is_near(at, region); ++at) {
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
    if (const At same = entry_of(region); same != entries_.end()) {
      f(region, same->second.value);
      if (entries_.size() > 1) join(same);
      return;
    }
    if (!has_cells(region)) return;
    const Box around = cut_out(region);
    At first = entries_.end();
    bool equal = true;
    for (At at = first_near(region); is_near(at, region); ++at) {
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
      for (At at = first; is_near(at, region); ++at)
        if (detail::within(at->second.box, region)) detail::extend(box, at->second.box);
      absorb(first, box);
    }
    // An entry that found nobody to join need not ask again: what others make of themselves has the same cells.
    for (At at = first_near(around); is_near(at, around); ++at)
      if (std::exchange(at->second.is_rest, false) || detail::overlap(at->second.box, region)) at = join(at);
  }
  template <class F>
  void update(const Region& region, F&& f) {
    for (const Box& box : region.boxes()) update(box, f);
  }
  /// The same where f gives a value that no other cells have: nobody is compared with an entry that is the region.
  template <class F>
  void renew(const Box& region, F&& f) {
    if (const At same = entry_of(region); same != entries_.end())
      f(region, same->second.value);
    else
      update(region, f);
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
  using ConstAt = typename Entries::const_iterator;

  static Index key_of(const Box& box) { return box.dims() > 0 ? box.lower[0] : 0; }

  bool has_cells(const Box& region) const {
    if (entries_.empty()) return false;
    detail::check_dims(entries_.begin()->second.box, region);
    return !region.empty();
  }

  /// From here on are all entries that overlap or touch `box`: in one dimension the entry before the first that begins
  /// in it; otherwise those that are long enough.
  At first_near(const Box& box) {
    if (entries_.size() < 8 || box.dims() == 0) return entries_.begin();
    if (box.dims() > 1) return entries_.lower_bound(below(box.lower[0], length_max_));
    const At at = entries_.lower_bound(box.lower[0]);
    return at == entries_.begin() ? at : std::prev(at);
  }
  ConstAt first_near(const Box& box) const { return const_cast<RegionMap*>(this)->first_near(box); }
  /// False at the end, and where all others lie behind `box`.
  bool is_near(const ConstAt& at, const Box& box) const {
    return at != entries_.end() && (box.dims() == 0 || at->first <= box.upper[0]);
  }

  static Index below(Index at, Index by) {
    Index out = 0;
    return __builtin_sub_overflow(at, by, &out) ? INT64_MIN : out;
  }
  static Index length_of(const Box& box) {
    Index out = 0;
    return box.dims() > 0 && __builtin_sub_overflow(box.upper[0], box.lower[0], &out) ? INT64_MAX : out;
  }
  /// Now and then, so that what it costs is small beside the calls since the last time.
  void measure() {
    if (++calls_since_measured_ <= entries_.size()) return;
    calls_since_measured_ = 0;
    length_max_ = 0;
    for (const auto& [key, entry] : entries_) length_max_ = std::max(length_max_, length_of(entry.box));
  }

  /// The entry that is the region; the end when there is none.
  At entry_of(const Box& region) {
    const Index key = key_of(region);
    for (At at = entries_.lower_bound(key); at != entries_.end() && at->first == key; ++at)
      if (at->second.box == region) return at;
    return entries_.end();
  }

  /// Cuts entries so that none reaches out of the region. Returns a box of it and all that were cut.
  Box cut_out(const Box& region) {
    Box around = region;
    for (At at = first_near(region); is_near(at, region);) {
      const At here = at++;
      const Box box = here->second.box;
      if (!detail::overlap(box, region) || detail::within(box, region)) continue;
      Entries outside;
      for (const Box& piece : subtract(box, region))
        outside.emplace(key_of(piece), Entry{piece, here->second.value, true});
      place(here, intersect(box, region));
      entries_.merge(outside);
      detail::extend(around, box);
    }
    measure();
    return around;
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
    length_max_ = std::max(length_max_, length_of(box));
    for (At other = first_near(box); is_near(other, box);) {
      const At here = other++;
      if (here != at && detail::within(here->second.box, box)) entries_.erase(here);
    }
    return place(at, box);
  }

  /// Joins an entry with others as long as some make up a box with it. Returns where it is then.
  At join(At at) {
    for (At other = first_near(at->second.box); is_near(other, at->second.box);) {
      if (const auto box = joined(at->second, other->second)) {
        at = absorb(at, *box);
        other = first_near(*box);
      } else {
        ++other;
      }
    }
    return at;
  }

  /// The box that two neighbours make up, perhaps with others; nothing when they make up none.
  std::optional<Box> joined(const Entry& a, const Entry& b) const {
    if (!detail::share_face(a.box, b.box) || !(a.value == b.value)) return std::nullopt;
    Box box = a.box;
    detail::extend(box, b.box);
    if (!grow(box, a.value)) return std::nullopt;
    return box;
  }

  /// Extends `box` until no entry reaches out of it; false when one has another value.
  bool grow(Box& box, const Value& value) const {
    for (bool grew = true; grew;) {
      grew = false;
      for (auto at = first_near(box); is_near(at, box); ++at) {
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
  Index length_max_ = 0;  ///< in dimension 0: no entry is longer
  std::size_t calls_since_measured_ = 0;
};

}  // namespace tranship
