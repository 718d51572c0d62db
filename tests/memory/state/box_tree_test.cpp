#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/memory/state/box_tree.hpp>

#include "support/random_layouts.hpp"

namespace tranship::detail {
namespace {

using test::first_fault;
using test::Random;

bool are_near(const Box& a, const Box& b) {
  for (int d = 0; d < a.dims(); ++d)
    if (a.lower[d] > b.upper[d] || b.lower[d] > a.upper[d]) return false;
  return true;
}

Box random_box(Random& random, int dims) {
  Box box;
  for (int d = 0; d < dims; ++d) {
    box.lower.push_back(random.between(-30, 30));
    box.upper.push_back(box.lower[d] + random.between(1, random.one_in(6) ? 40 : 4));
  }
  return box;
}

TEST(BoxTree, random_boxes_that_come_and_go_are_found) {
  EXPECT_EQ(first_fault(0.02,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(1, 4));
                          std::vector<Box> first;
                          for (Index n = random.below(20); n > 0; --n) first.push_back(random_box(random, dims));
                          BoxTree tree{first};
                          std::map<BoxTree::Leaf, Box> boxes;
                          for (std::size_t i = 0; i < first.size(); ++i) boxes.emplace(BoxTree::Leaf(i), first[i]);
                          for (int turn = 0; turn < 600; ++turn) {
                            const bool grows = turn % 200 < 120;
                            if (boxes.empty() || random.one_in(4) != grows) {
                              const Box box = random_box(random, dims);
                              if (!boxes.emplace(tree.insert(box), box).second) return "two boxes have one name";
                            } else {
                              const auto at = std::next(boxes.begin(), random.below(Index(boxes.size())));
                              tree.erase(at->first);
                              boxes.erase(at);
                            }
                            if (tree.empty() != boxes.empty()) return "empty() is wrong";
                            const Box where = random_box(random, dims);
                            std::vector<BoxTree::Leaf> found, expected;
                            tree.visit(where, [&](BoxTree::Leaf leaf) {
                              found.push_back(leaf);
                              return true;
                            });
                            for (const auto& [leaf, box] : boxes)
                              if (are_near(box, where)) expected.push_back(leaf);
                            std::sort(found.begin(), found.end());
                            if (found != expected)
                              return fmt::format("turn {}: {} boxes are found, {} are there", turn, found.size(),
                                                 expected.size());
                          }
                          return "";
                        }),
            "");
}

TEST(BoxTree, a_search_ends_when_it_is_told_to) {
  const std::vector<Box> boxes(5, Box{{0, 0}, {2, 2}});
  const BoxTree tree{boxes};
  int seen = 0;
  tree.visit(boxes[0], [&](BoxTree::Leaf) { return ++seen < 3; });
  EXPECT_EQ(seen, 3);
}

TEST(BoxTree, boxes_in_order_do_not_make_it_a_list) {
  constexpr Index count = 20'000;
  BoxTree tree;
  std::vector<BoxTree::Leaf> leaves;
  const std::uint64_t before = box_steps;
  const auto look = [&](Index at) {
    int seen = 0;
    tree.visit({{at, 0}, {at + 1, 1}}, [&](BoxTree::Leaf) { return ++seen > 0; });
    EXPECT_GE(seen, 1);
  };
  for (Index i = 0; i < count; ++i) {
    leaves.push_back(tree.insert({{i, 0}, {i + 1, 1}}));
    look(i);
  }
  // Half of them go from one end: what is left must not hang on a long branch.
  for (Index i = 0; i < count / 2; ++i) {
    tree.erase(leaves[std::size_t(i)]);
    look(count - 1 - i / 2);
  }
  EXPECT_LE(box_steps - before, std::uint64_t(count) * 3 / 2 * 60);
}

TEST(BoxTree, ends_of_the_index_range_are_no_trap) {
  BoxTree tree;
  const Box low{{INT64_MIN}, {INT64_MIN + 1}}, high{{INT64_MAX - 1}, {INT64_MAX}}, most{{INT64_MIN}, {INT64_MAX}};
  const BoxTree::Leaf first = tree.insert(low);
  tree.insert(high);
  std::vector<BoxTree::Leaf> found;
  tree.visit(low, [&](BoxTree::Leaf leaf) {
    found.push_back(leaf);
    return true;
  });
  EXPECT_EQ(found, std::vector{first});
  int seen = 0;
  tree.visit(most, [&](BoxTree::Leaf) { return ++seen > 0; });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace tranship::detail
