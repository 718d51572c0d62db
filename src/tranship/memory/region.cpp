#include "tranship/memory/region.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/memory/state/box_tree.hpp>

namespace tranship {
namespace {

using detail::BoxTree;
using detail::check_dims;
using detail::overlap;
using detail::within;

using Boxes = std::span<const Box>;

void check_dims(Boxes a, Boxes b) {
  if (!a.empty() && !b.empty()) check_dims(a[0], b[0]);
}

bool is_line(Boxes boxes) {
  return !boxes.empty() && boxes[0].dims() == 1;
}

/// One walk along two lists of ascending disjoint intervals. Returns the intervals where keep(in a, in b) is true.
template <class Keep>
std::vector<Box> walk(Boxes a, Boxes b, Keep keep) {
  const auto edge = [](Boxes boxes, std::size_t i) { return (i % 2 ? boxes[i / 2].upper : boxes[i / 2].lower)[0]; };
  std::vector<Box> out;
  Index begin = 0;
  bool kept = false;
  for (std::size_t i = 0, j = 0; i < 2 * a.size() || j < 2 * b.size();) {
    Index at = 0;
    if (j == 2 * b.size() || (i < 2 * a.size() && edge(a, i) <= edge(b, j))) {
      at = edge(a, i++);
      if (j < 2 * b.size() && edge(b, j) == at) ++j;
    } else {
      at = edge(b, j++);
    }
    if (keep(i % 2 == 1, j % 2 == 1) == kept) continue;
    if (kept) out.push_back({{begin}, {at}});
    begin = at;
    kept = !kept;
  }
  return out;
}

/// With fewer boxes, a loop over all is faster than a tree.
bool are_few(Boxes boxes) {
  return boxes.size() < 16;
}

/// Calls f(box of a, box of b) for all pairs that overlap, until it returns false.
template <class F>
void visit_pairs(Boxes a, Boxes b, F&& f) {
  if (are_few(a) || are_few(b)) {
    for (const Box& box : a)
      for (const Box& other : b)
        if (overlap(box, other) && !f(box, other)) return;
    return;
  }
  const BoxTree tree(a);
  bool goes_on = true;
  for (std::size_t j = 0; j < b.size() && goes_on; ++j)
    tree.visit(b[j], [&](BoxTree::Leaf i) {
      const Box& box = a[std::size_t(i)];
      return goes_on = !overlap(box, b[j]) || f(box, b[j]);
    });
}

/// A set of disjoint boxes from which boxes can be cut.
class Pieces {
 public:
  explicit Pieces(Boxes boxes) : boxes_(boxes.begin(), boxes.end()) {
    if (!are_few(boxes_)) plant();
  }

  void add(const Box& box) {
    boxes_.push_back(box);
    if (!tree_.empty())
      add_leaf(boxes_.size() - 1);
    else if (!are_few(boxes_))
      plant();
  }
  void cut(const Box& hole) {
    cut_.clear();
    visit(hole, [&](std::size_t i) { cut_.push_back(i); });
    // In descending order: the box that moves to an erased place has been cut already.
    std::sort(cut_.begin(), cut_.end(), std::greater<>());
    for (const std::size_t i : cut_) {
      const std::vector<Box> rest = subtract(boxes_[i], hole);
      erase(i);
      for (const Box& piece : rest) add(piece);
    }
  }
  /// Returns the pieces of a box that the set lacks.
  std::vector<Box> missing_of(const Box& box) const {
    std::vector<Box> out{box}, next;
    visit(box, [&](std::size_t i) {
      next.clear();
      for (const Box& part : out) {
        const std::vector<Box> rest = subtract(part, boxes_[i]);
        next.insert(next.end(), rest.begin(), rest.end());
      }
      std::swap(out, next);
    });
    return out;
  }
  std::vector<Box> take() { return std::move(boxes_); }

 private:
  /// Calls f(i) for each box that overlaps `box`.
  template <class F>
  void visit(const Box& box, F&& f) const {
    const auto look = [&](std::size_t i) {
      if (overlap(boxes_[i], box)) f(i);
      return true;
    };
    if (tree_.empty()) {
      for (std::size_t i = 0; i < boxes_.size(); ++i) look(i);
      detail::box_steps += boxes_.size();
    } else {
      tree_.visit(box, [&](BoxTree::Leaf leaf) { return look(of_leaf_[std::size_t(leaf)]); });
    }
  }
  void plant() {
    for (std::size_t i = 0; i < boxes_.size(); ++i) add_leaf(i);
  }
  void add_leaf(std::size_t i) {
    const BoxTree::Leaf leaf = tree_.insert(boxes_[i]);
    leaf_.resize(boxes_.size());
    leaf_[i] = leaf;
    of_leaf_.resize(std::max(of_leaf_.size(), std::size_t(leaf) + 1));
    of_leaf_[std::size_t(leaf)] = i;
  }
  void erase(std::size_t i) {
    const std::size_t last = boxes_.size() - 1;
    const bool has_tree = !tree_.empty();
    if (has_tree) tree_.erase(leaf_[i]);
    if (i != last) {
      boxes_[i] = boxes_[last];
      if (has_tree) {
        leaf_[i] = leaf_[last];
        of_leaf_[std::size_t(leaf_[i])] = i;
      }
    }
    boxes_.pop_back();
    if (has_tree) leaf_.pop_back();
  }

  std::vector<Box> boxes_;
  BoxTree tree_;  // empty while there are few boxes
  std::vector<BoxTree::Leaf> leaf_;
  std::vector<std::size_t> of_leaf_;
  std::vector<std::size_t> cut_;
};

std::vector<Box> without(Boxes a, Boxes b) {
  Pieces out(a);
  for (const Box& hole : b) out.cut(hole);
  return out.take();
}

/// Orders boxes by their place in all dimensions except one, then along that one.
bool comes_before(const Box& a, const Box& b, int except) {
  for (int d = 0; d < a.dims(); ++d) {
    if (d == except) continue;
    if (a.lower[d] != b.lower[d]) return a.lower[d] < b.lower[d];
    if (a.upper[d] != b.upper[d]) return a.upper[d] < b.upper[d];
  }
  return a.lower[except] < b.lower[except];
}

/// Returns true when `b` continues `a` along dimension `d`.
bool continues(const Box& a, const Box& b, int d) {
  if (a.upper[d] != b.lower[d]) return false;
  for (int e = 0; e < a.dims(); ++e)
    if (e != d && !(a[e] == b[e])) return false;
  return true;
}

/// Joins boxes that form a row along dimension `d`.
void join_rows(std::vector<Box>& boxes, int d) {
  std::sort(boxes.begin(), boxes.end(), [d](const Box& a, const Box& b) { return comes_before(a, b, d); });
  std::size_t last = 0;
  for (std::size_t i = 1; i < boxes.size(); ++i) {
    if (continues(boxes[last], boxes[i], d))
      boxes[last].upper[d] = boxes[i].upper[d];
    else
      boxes[++last] = boxes[i];
  }
  boxes.resize(last + 1);
}

/// Adds the number of cells of a box; returns false when a number does not fit.
bool add_cells(const Box& box, Index& sum) {
  Index cells = 1;
  for (int d = 0; d < box.dims(); ++d) {
    Index length = 0;
    if (__builtin_sub_overflow(box.upper[d], box.lower[d], &length) || __builtin_mul_overflow(cells, length, &cells))
      return false;
  }
  return !__builtin_add_overflow(sum, cells, &sum);
}

/// Returns true when disjoint boxes inside `box` fill it. Returns false also when its cells cannot be counted.
bool fill(const Box& box, const std::vector<Box>& boxes) {
  Index cells = 0, filled = 0;
  if (!add_cells(box, cells)) return false;
  return std::all_of(boxes.begin(), boxes.end(), [&](const Box& part) { return add_cells(part, filled); }) &&
         filled == cells;
}

}  // namespace

namespace detail {

void refuse_dims(int a, int b) {
  throw_error(ErrorCode::invalid_use, "regions of different spaces: one has {}, the other {}", amount(a, "dimension"),
              b);
}

}  // namespace detail

Region Region::of(std::vector<Box> boxes) {
  Region out;
  if (boxes.size() > 1)
    out.many_ = std::move(boxes);
  else if (!boxes.empty())
    out = Region(boxes[0]);
  return out;
}

Region Region::joined(std::vector<Box> boxes) {
  if (boxes.size() < 2) return of(std::move(boxes));
  // Boxes may interlock so that no two of them form a box, but all together do.
  Box around = boxes[0];
  for (const Box& box : boxes) detail::extend(around, box);
  if (fill(around, boxes)) return around;
  for (std::size_t before = 0; before != boxes.size();) {
    before = boxes.size();
    for (int d = 0; d < around.dims(); ++d) join_rows(boxes, d);
  }
  return of(std::move(boxes));
}

Region Region::intervals(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& i) { return i.empty(); });
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.lower < b.lower; });
  std::vector<Box> out;
  for (const Interval& i : intervals) {
    if (out.empty() || out.back().upper[0] < i.lower)
      out.push_back({{i.lower}, {i.upper}});
    else
      out.back().upper[0] = std::max(out.back().upper[0], i.upper);
  }
  return of(std::move(out));
}

Region Region::boxes(const std::vector<Box>& boxes) {
  if (boxes.empty()) return {};
  for (const Box& box : boxes) check_dims(boxes[0], box);
  if (!is_line(boxes)) {
    Pieces out({});
    for (const Box& box : boxes)
      if (!box.empty())
        for (const Box& piece : out.missing_of(box)) out.add(piece);
    return joined(out.take());
  }
  std::vector<Interval> line;
  for (const Box& box : boxes) line.push_back(box[0]);
  return intervals(std::move(line));
}

Index Region::count() const {
  Index cells = 0;
  for (const Box& box : boxes()) cells = checked_add(cells, box.count());
  return cells;
}

bool Region::contains(const Region& other) const {
  check_dims(boxes(), other.boxes());
  if (has_one_)
    return std::all_of(other.boxes().begin(), other.boxes().end(), [&](const Box& box) { return within(box, one_); });
  return (other - *this).empty();
}

bool Region::overlaps(const Region& other) const {
  check_dims(boxes(), other.boxes());
  if (!has_one_ && !other.has_one_ && is_line(boxes())) return !(*this & other).empty();
  bool found = false;
  visit_pairs(boxes(), other.boxes(), [&](const Box&, const Box&) { return !(found = true); });
  return found;
}

bool Region::contains(const Indices& at) const noexcept {
  for (const Box& box : boxes())
    if (box.dims() == at.size() && box.contains(at)) return true;
  return false;
}

Region operator|(const Region& a, const Region& b) {
  check_dims(a.boxes(), b.boxes());
  if (a.empty() || (b.has_one_ && a.has_one_ && within(a.one_, b.one_))) return b;
  if (b.empty() || (b.has_one_ && a.has_one_ && within(b.one_, a.one_))) return a;
  if (is_line(a.boxes()))
    return Region::of(walk(a.boxes(), b.boxes(), [](bool in_a, bool in_b) { return in_a || in_b; }));
  std::vector<Box> out = without(b.boxes(), a.boxes());
  out.insert(out.end(), a.boxes().begin(), a.boxes().end());
  return Region::joined(std::move(out));
}

Region operator&(const Region& a, const Region& b) {
  check_dims(a.boxes(), b.boxes());
  if (a.empty() || b.empty()) return {};
  if (a.has_one_ && b.has_one_) return intersect(a.one_, b.one_);
  if (is_line(a.boxes()))
    return Region::of(walk(a.boxes(), b.boxes(), [](bool in_a, bool in_b) { return in_a && in_b; }));
  std::vector<Box> out;
  visit_pairs(a.boxes(), b.boxes(), [&](const Box& box, const Box& other) {
    out.push_back(intersect(box, other));
    return true;
  });
  return Region::joined(std::move(out));
}

Region operator-(const Region& a, const Region& b) {
  check_dims(a.boxes(), b.boxes());
  if (a.empty() || b.empty()) return a;
  if (a.has_one_ && b.has_one_ && !overlap(a.one_, b.one_)) return a;
  if (is_line(a.boxes()))
    return Region::of(walk(a.boxes(), b.boxes(), [](bool in_a, bool in_b) { return in_a && !in_b; }));
  return Region::joined(without(a.boxes(), b.boxes()));
}

bool operator==(const Region& a, const Region& b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  if (a.boxes()[0].dims() != b.boxes()[0].dims()) return false;
  if (a.has_one_ && b.has_one_) return a.one_ == b.one_;
  return a.contains(b) && b.contains(a);
}

std::string to_string(const Region& region) {
  if (region.empty()) return "no cells";
  const Box& first = region.boxes()[0];
  std::string out;
  for (int d = 0; d < first.dims(); ++d) out += fmt::format("{}[{},{})", d ? "x" : "", first.lower[d], first.upper[d]);
  if (first.dims() == 0) out = "a scalar";
  if (region.boxes().size() > 1) out += fmt::format(" and {} more", region.boxes().size() - 1);
  return out;
}

}  // namespace tranship
