// Private: RegionMap maps every cell of a box to a value and stores disjoint boxes of equal values. Its cost grows with
// the number of distinct regions, never with the number of cells.
//
// Invariants: no two or more entries of equal value form a box, so a map whose values are all equal has one entry. With
// many entries in more than one dimension, every entry is a leaf of the tree (box_tree.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tranship/memory/region.hpp>
#include <tranship/memory/state/box_tree.hpp>

namespace tranship {

/// `Value` is copied when a region is cut, and compared when two may be joined. A call costs about log(entries) plus
/// the number of entries that it touches.
template <class Value>
class RegionMap {
 public:
  RegionMap() = default;
  /// An empty box gives a map without cells.
  RegionMap(const Box& whole, Value value) {
    if (!whole.empty()) entries_.emplace(key_of(whole), Entry{whole, std::move(value)});
  }
  RegionMap(const RegionMap& other) : entries_(other.entries_) {
    if (other.has_tree()) plant();
  }
  RegionMap(RegionMap&&) noexcept = default;
  RegionMap& operator=(RegionMap other) noexcept {
    std::swap(entries_, other.entries_);
    std::swap(tree_, other.tree_);
    std::swap(at_leaf_, other.at_leaf_);
    return *this;
  }
  ~RegionMap() = default;

  std::size_t entry_count() const noexcept { return entries_.size(); }

  /// Returns the value of all cells of these boxes when one entry holds them all, else null. Ignores cells outside the
  /// map.
  const Value* only(std::span<const Box> boxes) const noexcept {
    if (entries_.size() == 1) return &entries_.begin()->second.value;
    if (boxes.size() != 1) return nullptr;
    const Value* found = nullptr;
    visit_near(boxes[0], [&](At at) {
      if (detail::within(boxes[0], at->second.box)) found = &at->second.value;
      return !found;
    });
    return found;
  }

  /// Calls f(box, const value) for each entry.
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [key, entry] : entries_) f(entry.box, entry.value);
  }
  /// Calls f(box, const value) for the part of each entry inside the region, and cuts nothing. Ignores cells outside
  /// the map.
  template <class F>
  void for_each(const Box& region, F&& f) const {
    if (!has_cells(region)) return;
    visit_near(region, [&](At at) {
      const Box& box = at->second.box;
      if (detail::within(box, region))
        f(box, std::as_const(at->second.value));
      else if (detail::overlap(box, region))
        f(intersect(box, region), std::as_const(at->second.value));
      return true;
    });
  }
  template <class F>
  void for_each(const Region& region, F&& f) const {
    for (const Box& box : region.boxes()) for_each(box, f);
  }

  /// Calls f(box, value&) for entries that cover exactly the region's cells: cuts entries at its border first, and
  /// joins neighbours that have become equal afterwards. Ignores cells outside the map. When f throws, cells keep the
  /// values that it has set.
  template <class F>
  void update(const Box& region, F&& f) {
    if (const At same = entry_of(region); same != entries_.end()) {
      f(region, same->second.value);
      if (entries_.size() > 1) join(same);
      return;
    }
    if (!has_cells(region)) return;
    cut_out(region);
    list_.clear();
    visit_near(region, [&](At at) {
      if (detail::within(at->second.box, region)) list_.push_back(at);
      return true;
    });
    if (list_.empty()) return;
    bool equal = true;
    for (const At at : list_) {
      f(std::as_const(at->second.box), at->second.value);
      equal = equal && (at == list_[0] || at->second.value == list_[0]->second.value);
    }
    if (equal) {
      Box box = list_[0]->second.box;
      for (const At at : list_) detail::extend(box, at->second.box);
      list_[0] = absorb(list_[0], box);
      list_.resize(1);
    }
    join_all();
  }
  template <class F>
  void update(const Region& region, F&& f) {
    for (const Box& box : region.boxes()) update(box, f);
  }
  /// Like update(), for an f that sets a value that no other cells have: where an entry is exactly the region, it need
  /// not be compared with others.
  template <class F>
  void renew(const Box& region, F&& f) {
    if (const At same = entry_of(region); same != entries_.end())
      f(region, same->second.value);
    else
      update(region, f);
  }

 private:
  static constexpr std::size_t tree_min = 16;  ///< below this, a loop over all entries is faster

  struct Entry {
    Box box;
    Value value;
    detail::BoxTree::Leaf leaf = 0;
    std::ptrdiff_t listed = -1;  ///< index in list_ while it waits to be joined; -1: not listed
  };
  // By the lower end in dimension 0. A tree, so that cutting one entry of a million moves no others.
  using Entries = std::multimap<Index, Entry>;
  using At = typename Entries::iterator;

  static Index key_of(const Box& box) { return box.dims() > 0 ? box.lower[0] : 0; }

  bool has_cells(const Box& region) const {
    if (entries_.empty()) return false;
    detail::check_dims(entries_.begin()->second.box, region);
    return !region.empty();
  }

  /// Calls f(at) for all entries that overlap or touch `box`, and maybe for others, until it returns false. f must not
  /// change the entries.
  template <class F>
  void visit_near(const Box& box, F&& f) const {
    if (has_tree()) return tree_.visit(box, [&](detail::BoxTree::Leaf leaf) { return f(at_leaf_[std::size_t(leaf)]); });
    // In one dimension, the entry before the first one that begins in the box may touch it, too; no earlier one does.
    Entries& entries = const_cast<Entries&>(entries_);
    At at = entries.begin();
    if (box.dims() == 1 && entries.size() >= 8) {
      at = entries.lower_bound(box.lower[0]);
      if (at != entries.begin()) --at;
    }
    for (; at != entries.end() && (box.dims() == 0 || at->first <= box.upper[0]); ++at) {
      ++detail::box_steps;
      if (!f(at)) return;
    }
  }

  /// Returns the entry whose box is exactly the region, or the end.
  At entry_of(const Box& region) {
    At found = entries_.end();
    if (has_tree()) {
      visit_near(region, [&](At at) {
        if (at->second.box == region) found = at;
        return found == entries_.end();
      });
      return found;
    }
    const Index key = key_of(region);
    for (At at = entries_.lower_bound(key); at != entries_.end() && at->first == key; ++at)
      if (at->second.box == region) return at;
    return found;
  }

  // The tree.

  bool has_tree() const noexcept { return !tree_.empty(); }
  void add_leaf(At at) {
    at->second.leaf = tree_.insert(at->second.box);
    const auto leaf = std::size_t(at->second.leaf);
    if (leaf >= at_leaf_.size()) at_leaf_.resize(leaf + 1);
    at_leaf_[leaf] = at;
  }
  void plant() {
    for (At at = entries_.begin(); at != entries_.end(); ++at) add_leaf(at);
  }

  /// Adds the pieces outside the region that an entry was cut into.
  void add(Entries& pieces) {
    while (!pieces.empty()) {
      const At at = entries_.insert(pieces.extract(pieces.begin()));
      rest_.push_back(at);
      if (has_tree()) add_leaf(at);
    }
    if (!has_tree() && entries_.size() >= tree_min && entries_.begin()->second.box.dims() > 1) plant();
  }
  void erase(At at) {
    if (at->second.listed >= 0) list_[std::size_t(at->second.listed)] = entries_.end();
    if (has_tree()) tree_.erase(at->second.leaf);
    entries_.erase(at);
    if (entries_.size() < tree_min / 2) tree_.clear();
  }
  /// Gives an entry another box.
  At place(At at, const Box& box) {
    if (has_tree()) tree_.erase(at->second.leaf);
    if (at->first == key_of(box)) {
      at->second.box = box;
    } else {
      auto node = entries_.extract(at);
      node.key() = key_of(box);
      node.mapped().box = box;
      at = entries_.insert(std::move(node));
      if (at->second.listed >= 0) list_[std::size_t(at->second.listed)] = at;
    }
    if (has_tree()) add_leaf(at);
    return at;
  }

  /// Cuts entries at the border of the region. The pieces outside it are in rest_ afterwards.
  void cut_out(const Box& region) {
    list_.clear();
    rest_.clear();
    visit_near(region, [&](At at) {
      if (detail::overlap(at->second.box, region) && !detail::within(at->second.box, region)) list_.push_back(at);
      return true;
    });
    for (const At at : list_) {
      const Box box = at->second.box;
      Entries outside;
      for (const Box& piece : subtract(box, region)) outside.emplace(key_of(piece), Entry{piece, at->second.value});
      place(at, intersect(box, region));
      add(outside);
    }
  }

  /// Extends an entry to `box` and erases the entries inside it.
  At absorb(At at, const Box& box) {
    gone_.clear();
    visit_near(box, [&](At other) {
      if (other != at && detail::within(other->second.box, box)) gone_.push_back(other);
      return true;
    });
    for (const At other : gone_) erase(other);
    return place(at, box);
  }

  /// Joins the entries in list_ and the pieces of a cut, which may now fit other neighbours. An entry that finds no
  /// partner need not try again: joins of others do not change the cells around it.
  void join_all() {
    list_.insert(list_.end(), rest_.begin(), rest_.end());
    for (std::size_t i = 0; i < list_.size(); ++i) list_[i]->second.listed = std::ptrdiff_t(i);
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (list_[i] == entries_.end()) continue;
      list_[i]->second.listed = -1;
      join(list_[i]);
    }
  }

  /// Joins an entry with others as long as some of them form a box with it.
  void join(At at) {
    for (;;) {
      std::optional<Box> box;
      visit_near(at->second.box, [&](At other) {
        box = joined(at->second, other->second);
        return !box;
      });
      if (!box) return;
      at = absorb(at, *box);
    }
  }

  /// The box that two neighbours form, maybe together with others; empty when they form none.
  std::optional<Box> joined(const Entry& a, const Entry& b) const {
    if (!detail::share_face(a.box, b.box) || !(a.value == b.value)) return std::nullopt;
    Box box = a.box;
    detail::extend(box, b.box);
    if (!grow(box, a.value)) return std::nullopt;
    return box;
  }

  /// Extends `box` until no entry crosses its border. Returns false when an entry in it has another value.
  bool grow(Box& box, const Value& value) const {
    bool is_one_value = true;
    for (bool grew = true; grew && is_one_value;) {
      grew = false;
      visit_near(box, [&](At at) {
        const Entry& entry = at->second;
        if (!detail::overlap(entry.box, box)) return true;
        is_one_value = entry.value == value;
        if (!is_one_value || detail::within(entry.box, box)) return is_one_value;
        detail::extend(box, entry.box);
        grew = true;
        return true;
      });
    }
    return is_one_value;
  }

  Entries entries_;
  detail::BoxTree tree_;     // empty while entries are few, and in one dimension
  std::vector<At> at_leaf_;  // by leaf of the tree
  std::vector<At> list_;     // scratch of update()
  std::vector<At> rest_;     // scratch of update()
  std::vector<At> gone_;     // scratch of absorb()
};

}  // namespace tranship
