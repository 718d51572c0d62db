// Private: BoxTree finds the boxes at a given place among many, in any number of dimensions.
//
//        [ 0 1 2 3 4 ]          Each inner node has the hull of the boxes below it, and neither child has more than
//        /           \          three quarters of its leaves. A subtree that gets out of balance is rebuilt, split at
//    [ 0 1 ]      [ 2 3 4 ]     medians; so is the whole tree after as many changes as there are boxes, because hulls
//                               that only grow come to overlap. Finding, inserting and erasing a box takes about
//                               log n steps when boxes are disjoint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tranship/base/box.hpp>

namespace tranship::detail {

/// Number of boxes and hulls that searches of this thread have visited. Tests compare it with n log n.
inline thread_local std::uint64_t box_steps = 0;

/// Non-empty boxes of one number of dimensions, at least one. They may overlap. Allocates nothing while the number of
/// boxes does not exceed its previous maximum.
class BoxTree {
 public:
  /// Identifies a box while it is in the tree.
  using Leaf = std::int32_t;

  BoxTree() = default;
  /// Leaf i is boxes[i].
  explicit BoxTree(std::span<const Box> boxes);

  bool empty() const noexcept { return root_ < 0; }
  Leaf insert(const Box& box);
  void erase(Leaf leaf);
  void clear() noexcept;

  /// Calls f(leaf) for each box that overlaps or touches `box`, in unspecified order, until f returns false. f must not
  /// change the tree.
  template <class F>
  void visit(const Box& box, F&& f) const {
    if (empty()) return;
    std::int32_t open[open_max];
    int count = 0;
    open[count++] = root_;
    std::uint64_t steps = 0;
    while (count > 0) {
      const std::int32_t at = open[--count];
      ++steps;
      if (!is_near(at, box)) continue;
      const Node& node = nodes_[std::size_t(at)];
      if (node.children[0] < 0) {
        if (!f(Leaf(at))) break;
      } else {
        open[count++] = node.children[1];
        open[count++] = node.children[0];
      }
    }
    box_steps += steps;
  }

 private:
  struct Node {
    std::int32_t parent = -1;
    std::int32_t children[2] = {-1, -1};  ///< -1: this is a leaf
    std::int32_t leaves = 1;
  };
  // Each level has at most three quarters of the leaves of the one above: 2^31 leaves lie at most 75 deep, and a walk
  // leaves one node open at each level.
  static constexpr int open_max = 128;

  Index* bounds_of(std::int32_t at) { return bounds_.data() + std::size_t(at) * std::size_t(2 * dims_); }
  const Index* bounds_of(std::int32_t at) const { return bounds_.data() + std::size_t(at) * std::size_t(2 * dims_); }
  bool is_near(std::int32_t at, const Box& box) const noexcept {
    const Index* const bounds = bounds_of(at);
    for (int d = 0; d < dims_; ++d)
      if (bounds[2L * d] > box.upper[d] || box.lower[d] > bounds[2L * d + 1]) return false;
    return true;
  }

  std::int32_t new_node();
  std::int32_t new_leaf(const Box& box);
  /// Computes the node's hull and number of leaves from its children.
  void refit(std::int32_t at);
  double growth_by(std::int32_t at, const Index* added) const;
  bool is_balanced(std::int32_t at) const;
  void put_in_place_of(std::int32_t old, std::int32_t parent, std::int32_t fresh);
  /// Refits all nodes from `at` up to the root, then rebuilds the highest one that is out of balance.
  void mend(std::int32_t at);
  void rebuild(std::int32_t at);
  std::int32_t build(std::span<std::int32_t> leaves);

  int dims_ = 0;
  std::int32_t root_ = -1;
  std::int32_t changes_ = 0;  // since the whole tree was built
  std::vector<Node> nodes_;
  std::vector<Index> bounds_;  // of node i, from 2 * dims * i: lower and upper in each dimension
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> gathered_;  // scratch: the leaves of a subtree that is rebuilt
};

}  // namespace tranship::detail
