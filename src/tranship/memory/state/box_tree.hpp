// Private: BoxTree finds those of many boxes that lie at a given place, in any number of dimensions.
//
//        [ 0 1 2 3 4 ]          Each inner node has the hull of the boxes below it, and neither of its two children has
//        /           \          more than three quarters of its leaves; a subtree where that is no longer so is built
//    [ 0 1 ]      [ 2 3 4 ]     anew, halved at medians, and so is all after as many changes as there are boxes, since
//                               hulls that only grow come to overlap. So a box is found, added or taken away in about
//                               log n steps where boxes are disjoint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tranship/base/box.hpp>

namespace tranship::detail {

/// How many boxes and hulls searches of this thread have looked at: tests hold it against n log n.
inline thread_local std::uint64_t box_steps = 0;

/// Boxes of one number of dimensions, at least one; none of them empty. They may overlap. Allocates nothing while it
/// has no more boxes than it has had before.
class BoxTree {
 public:
  /// Names a box as long as it is there.
  using Leaf = std::int32_t;

  BoxTree() = default;
  /// Leaf i is boxes[i].
  explicit BoxTree(std::span<const Box> boxes);

  bool empty() const noexcept { return root_ < 0; }
  Leaf insert(const Box& box);
  void erase(Leaf leaf);
  void clear() noexcept;

  /// Calls f(leaf) for each box that overlaps or touches `box`, in no order that matters, until it returns false. The
  /// tree must not be changed meanwhile.
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
    std::int32_t children[2] = {-1, -1};  ///< none: a leaf
    std::int32_t leaves = 1;
  };
  // Three quarters of three quarters of ...: 2^31 leaves lie at most 75 deep, and a walk leaves one node open at each.
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
  /// The node's hull and number of leaves, from its children.
  void refit(std::int32_t at);
  double growth_by(std::int32_t at, const Index* added) const;
  bool is_balanced(std::int32_t at) const;
  void put_in_place_of(std::int32_t old, std::int32_t parent, std::int32_t fresh);
  /// From a node up to the root: refits all, then builds the highest anew that is out of balance.
  void mend(std::int32_t at);
  void rebuild(std::int32_t at);
  std::int32_t build(std::span<std::int32_t> leaves);

  int dims_ = 0;
  std::int32_t root_ = -1;
  std::int32_t changes_ = 0;  // since all was built
  std::vector<Node> nodes_;
  std::vector<Index> bounds_;  // of node i, from 2 * dims * i: lower and upper of each dimension
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> gathered_;  // while a subtree is built anew
};

}  // namespace tranship::detail
