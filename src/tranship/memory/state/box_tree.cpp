#include "tranship/memory/state/box_tree.hpp"

#include <algorithm>

namespace tranship::detail {

BoxTree::BoxTree(std::span<const Box> boxes) {
  if (boxes.empty()) return;
  nodes_.reserve(2 * boxes.size());
  for (const Box& box : boxes) gathered_.push_back(new_leaf(box));
  root_ = build(gathered_);
}

std::int32_t BoxTree::new_node() {
  if (free_.empty()) {
    const std::int32_t at = std::int32_t(nodes_.size());
    nodes_.emplace_back();
    bounds_.resize(nodes_.size() * std::size_t(2 * dims_));
    return at;
  }
  const std::int32_t at = free_.back();
  free_.pop_back();
  nodes_[std::size_t(at)] = Node();
  return at;
}

std::int32_t BoxTree::new_leaf(const Box& box) {
  if (nodes_.empty()) dims_ = box.dims();
  const std::int32_t leaf = new_node();
  Index* const bounds = bounds_of(leaf);
  for (int d = 0; d < dims_; ++d) {
    bounds[2L * d] = box.lower[d];
    bounds[2L * d + 1] = box.upper[d];
  }
  return leaf;
}

void BoxTree::refit(std::int32_t at) {
  Node& node = nodes_[std::size_t(at)];
  const auto [left, right] = node.children;
  node.leaves = nodes_[std::size_t(left)].leaves + nodes_[std::size_t(right)].leaves;
  Index* const bounds = bounds_of(at);
  const Index* const a = bounds_of(left);
  const Index* const b = bounds_of(right);
  for (int d = 0; d < dims_; ++d) {
    bounds[2L * d] = std::min(a[2L * d], b[2L * d]);
    bounds[2L * d + 1] = std::max(a[2L * d + 1], b[2L * d + 1]);
  }
}

/// The sum of the lengths by which the hull's edges grow with a box; as double, since lengths may not fit in 63 bits.
double BoxTree::growth_by(std::int32_t at, const Index* added) const {
  const Index* const bounds = bounds_of(at);
  double growth = 0;
  for (int d = 0; d < dims_; ++d) {
    if (added[2L * d] < bounds[2L * d]) growth += double(bounds[2L * d]) - double(added[2L * d]);
    if (added[2L * d + 1] > bounds[2L * d + 1]) growth += double(added[2L * d + 1]) - double(bounds[2L * d + 1]);
  }
  return growth;
}

bool BoxTree::is_balanced(std::int32_t at) const {
  const Node& node = nodes_[std::size_t(at)];
  const auto [left, right] = node.children;
  const std::int32_t most = std::max(nodes_[std::size_t(left)].leaves, nodes_[std::size_t(right)].leaves);
  return node.leaves < 4 || std::int64_t(most) * 4 <= std::int64_t(node.leaves) * 3;
}

void BoxTree::put_in_place_of(std::int32_t old, std::int32_t parent, std::int32_t fresh) {
  nodes_[std::size_t(fresh)].parent = parent;
  if (parent < 0) {
    root_ = fresh;
    return;
  }
  auto& children = nodes_[std::size_t(parent)].children;
  children[children[0] == old ? 0 : 1] = fresh;
}

BoxTree::Leaf BoxTree::insert(const Box& box) {
  const std::int32_t leaf = new_leaf(box);
  if (empty()) return root_ = leaf;
  const Index* bounds = bounds_of(leaf);
  std::int32_t at = root_;
  while (nodes_[std::size_t(at)].children[0] >= 0) {
    const auto [left, right] = nodes_[std::size_t(at)].children;
    const double to_left = growth_by(left, bounds), to_right = growth_by(right, bounds);
    const bool fewer_left = nodes_[std::size_t(left)].leaves < nodes_[std::size_t(right)].leaves;
    at = to_left < to_right || (to_left == to_right && fewer_left) ? left : right;
  }
  const std::int32_t inner = new_node();
  put_in_place_of(at, nodes_[std::size_t(at)].parent, inner);
  nodes_[std::size_t(inner)].children[0] = at;
  nodes_[std::size_t(inner)].children[1] = leaf;
  nodes_[std::size_t(at)].parent = nodes_[std::size_t(leaf)].parent = inner;
  mend(inner);
  return leaf;
}

void BoxTree::erase(Leaf leaf) {
  const std::int32_t parent = nodes_[std::size_t(leaf)].parent;
  free_.push_back(leaf);
  if (parent < 0) {
    root_ = -1;
    return;
  }
  const Node& above = nodes_[std::size_t(parent)];
  const std::int32_t sibling = above.children[above.children[0] == leaf ? 1 : 0];
  const std::int32_t next = above.parent;
  put_in_place_of(parent, next, sibling);
  free_.push_back(parent);
  mend(next);
}

void BoxTree::clear() noexcept {
  root_ = -1;
  changes_ = 0;
  nodes_.clear();
  bounds_.clear();
  free_.clear();
}

void BoxTree::mend(std::int32_t at) {
  std::int32_t worst = -1;
  for (; at >= 0; at = nodes_[std::size_t(at)].parent) {
    refit(at);
    if (!is_balanced(at)) worst = at;
  }
  if (++changes_ > nodes_[std::size_t(root_)].leaves) {
    changes_ = 0;
    worst = root_;
  }
  if (worst >= 0) rebuild(worst);
}

void BoxTree::rebuild(std::int32_t at) {
  const std::int32_t parent = nodes_[std::size_t(at)].parent;
  gathered_.clear();
  std::int32_t open[open_max];
  int count = 0;
  open[count++] = at;
  while (count > 0) {
    const std::int32_t next = open[--count];
    const Node& node = nodes_[std::size_t(next)];
    if (node.children[0] < 0) {
      gathered_.push_back(next);
      continue;
    }
    open[count++] = node.children[1];
    open[count++] = node.children[0];
    free_.push_back(next);
  }
  put_in_place_of(at, parent, build(gathered_));
}

std::int32_t BoxTree::build(std::span<std::int32_t> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const auto middle_of = [&](std::int32_t leaf, int d) {
    const Index* const bounds = bounds_of(leaf);
    return double(bounds[2L * d]) + double(bounds[2L * d + 1]);
  };
  int widest = 0;
  double width_max = -1;
  for (int d = 0; d < dims_; ++d) {
    double least = middle_of(leaves[0], d), most = least;
    for (const std::int32_t leaf : leaves) {
      least = std::min(least, middle_of(leaf, d));
      most = std::max(most, middle_of(leaf, d));
    }
    if (most - least > width_max) widest = d, width_max = most - least;
  }
  const std::size_t half = leaves.size() / 2;
  std::nth_element(leaves.begin(), leaves.begin() + std::ptrdiff_t(half), leaves.end(),
                   [&](std::int32_t a, std::int32_t b) { return middle_of(a, widest) < middle_of(b, widest); });
  const std::int32_t left = build(leaves.first(half));
  const std::int32_t right = build(leaves.subspan(half));
  const std::int32_t inner = new_node();
  Node& node = nodes_[std::size_t(inner)];
  node.children[0] = left;
  node.children[1] = right;
  nodes_[std::size_t(left)].parent = nodes_[std::size_t(right)].parent = inner;
  refit(inner);
  return inner;
}

}  // namespace tranship::detail
