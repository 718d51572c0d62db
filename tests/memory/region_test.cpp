#include <set>

#include <gtest/gtest.h>

#include <tranship/memory/region.hpp>
#include <tranship/memory/state/box_tree.hpp>

#include "support/random_layouts.hpp"

namespace tranship {
namespace {

using test::first_fault;
using test::Random;

using Cells = std::set<std::vector<Index>>;

Cells cells_of(const Box& box) {
  Cells out;
  for_each_coordinate(box.extents(), [&](const Indices& at) {
    std::vector<Index> cell;
    for (int d = 0; d < at.size(); ++d) cell.push_back(at[d] + box.lower[d]);
    out.insert(cell);
  });
  return out;
}

/// Fails where two boxes have a cell in common, or one has none.
Cells cells_of(const Region& region) {
  Cells out;
  std::size_t count = 0;
  for (const Box& box : region.boxes()) {
    EXPECT_FALSE(box.empty());
    const Cells cells = cells_of(box);
    count += cells.size();
    out.insert(cells.begin(), cells.end());
  }
  EXPECT_EQ(count, out.size()) << "boxes overlap in " << to_string(region);
  return out;
}

Cells united(const Cells& a, const Cells& b) {
  Cells out = a;
  out.insert(b.begin(), b.end());
  return out;
}

template <class Keep>
Cells filtered(const Cells& a, Keep keep) {
  Cells out;
  for (const auto& cell : a)
    if (keep(cell)) out.insert(cell);
  return out;
}

/// What differs between the operations on two regions and those on their cells.
std::string fault_of(const Region& a, const Cells& in_a, const Region& b, const Cells& in_b) {
  const Cells both = filtered(in_a, [&](const auto& cell) { return in_b.count(cell) > 0; });
  const Cells rest = filtered(in_a, [&](const auto& cell) { return in_b.count(cell) == 0; });
  const std::string pair = to_string(a) + " and " + to_string(b);
  if (cells_of(a) != in_a) return "cells of " + pair;
  if (cells_of(a | b) != united(in_a, in_b)) return "union of " + pair;
  if (cells_of(a & b) != both) return "intersection of " + pair;
  if (cells_of(a - b) != rest) return "difference of " + pair;
  if (a.overlaps(b) != !both.empty()) return "overlap of " + pair;
  if (a.contains(b) != (both == in_b)) return "containing of " + pair;
  if ((a == b) != (in_a == in_b)) return "equality of " + pair;
  if (a.count() != Index(in_a.size())) return "count of " + pair;
  if (a.empty() != in_a.empty()) return "emptiness of " + pair;
  for (const auto& cell : united(in_a, in_b))
    if (a.contains(Indices(cell)) != (in_a.count(cell) > 0)) return "a cell of " + pair;
  if (!(((a - b) | (a & b)) == a)) return "putting together again " + pair;
  return "";
}

TEST(Region, all_pairs_of_sets_of_six_cells_on_a_line) {
  constexpr unsigned sets = 1 << 6;
  std::vector<Region> regions;
  std::vector<Cells> cells;
  for (unsigned set = 0; set < sets; ++set) {
    std::vector<Interval> intervals;
    Cells in;
    for (Index i = 0; i < 6; ++i)
      if (set >> i & 1) {
        intervals.push_back({i, i + 1});
        in.insert({i});
      }
    regions.push_back(Region::intervals(intervals));
    cells.push_back(in);
  }
  for (unsigned a = 0; a < sets; ++a)
    for (unsigned b = 0; b < sets; ++b) ASSERT_EQ(fault_of(regions[a], cells[a], regions[b], cells[b]), "");
}

TEST(Region, on_a_line_boxes_ascend_with_gaps_between_them) {
  const Region region = Region::intervals({{7, 9}, {0, 2}, {4, 4}, {2, 3}, {8, 12}, {5, 6}});
  ASSERT_EQ(region.boxes().size(), 3u);
  EXPECT_EQ(region.boxes()[0], (Box{{0}, {3}}));
  EXPECT_EQ(region.boxes()[1], (Box{{5}, {6}}));
  EXPECT_EQ(region.boxes()[2], (Box{{7}, {12}}));
}

Box random_box(Random& random, int dims, Index extent) {
  Box box;
  for (int d = 0; d < dims; ++d) {
    const Index lower = random.below(extent);
    box.lower.push_back(lower - 2);
    box.upper.push_back(lower - 2 + random.between(random.one_in(8) ? -1 : 1, extent - lower));
  }
  return box;
}

TEST(Region, random_sets_agree_with_their_cells) {
  EXPECT_EQ(first_fault(0.2,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(1, 3));
                          Region regions[2];
                          Cells cells[2];
                          for (int k = 0; k < 2; ++k) {
                            std::vector<Box> boxes;
                            for (Index n = random.between(0, 5); n > 0; --n) {
                              boxes.push_back(random_box(random, dims, dims == 3 ? 5 : 8));
                              cells[k] = united(cells[k], cells_of(boxes.back()));
                            }
                            regions[k] = Region::boxes(boxes);
                          }
                          return fault_of(regions[0], cells[0], regions[1], cells[1]);
                        }),
            "");
}

TEST(Region, what_was_cut_and_put_together_again_is_one_box) {
  EXPECT_EQ(first_fault(0.2,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(1, 3));
                          const Region whole = Region::whole(Indices::filled(dims, 7));
                          Region rest = whole;
                          std::vector<Region> pieces;
                          while (!rest.empty()) {
                            const Region hole = random_box(random, dims, 9);
                            pieces.push_back(rest & hole);
                            rest = rest - hole;
                          }
                          random.shuffle(pieces);
                          Region again;
                          for (const Region& piece : pieces) again = again | piece;
                          if (!(again == whole)) return "cells are lost";
                          if (again.boxes().size() != 1) return fmt::format("{} boxes", again.boxes().size());
                          return "";
                        }),
            "");
}

TEST(Region, sets_of_hundreds_of_boxes_agree_with_their_cells) {
  EXPECT_EQ(first_fault(0.01,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(2, 3));
                          Region regions[2];
                          Cells cells[2];
                          for (int k = 0; k < 2; ++k) {
                            std::vector<Box> boxes;
                            for (Index n = random.between(10, 300); n > 0; --n) {
                              Box box;
                              for (int d = 0; d < dims; ++d) {
                                box.lower.push_back(random.below(dims == 2 ? 40 : 12));
                                box.upper.push_back(box.lower[d] + random.between(1, random.one_in(30) ? 9 : 2));
                              }
                              boxes.push_back(box);
                              cells[k].merge(cells_of(box));
                            }
                            regions[k] = Region::boxes(boxes);
                          }
                          return fault_of(regions[0], cells[0], regions[1], cells[1]);
                        }),
            "");
}

/// What set operations on a chequerboard and its opposite look at, for each box.
double steps_of(int dims, Index extent) {
  std::vector<Box> black, white;
  for_each_coordinate(Indices::filled(dims, extent), [&](const Indices& at) {
    Box cell{at, at};
    Index sum = 0;
    for (int d = 0; d < dims; ++d) {
      sum += at[d];
      ++cell.upper[d];
    }
    (sum % 2 ? black : white).push_back(cell);
  });
  Random(1).shuffle(black);
  const std::uint64_t before = detail::box_steps;
  const Region a = Region::boxes(black), b = Region::boxes(white);
  EXPECT_EQ(a.boxes().size(), black.size());
  EXPECT_FALSE(a.overlaps(b));
  EXPECT_TRUE((a & b).empty());
  EXPECT_EQ((a - b).count(), a.count());
  const Region whole = a | b;
  EXPECT_EQ(whole.boxes().size(), 1u);
  EXPECT_EQ(whole - a, b);
  EXPECT_TRUE(whole.contains(a));
  return double(detail::box_steps - before) / double(black.size() + white.size());
}

TEST(Region, ten_thousand_boxes_cost_about_their_number) {
  EXPECT_LE(steps_of(2, 100), 2.5 * steps_of(2, 25));
  EXPECT_LE(steps_of(3, 22), 2.5 * steps_of(3, 9));
}

TEST(Region, boxes_that_interlock_become_one) {
  // a a b      Four bars around a cell: no two of them are a box.
  // d e b
  // d c c
  const std::vector<Box> bars = {{{0, 0}, {1, 2}}, {{0, 2}, {2, 3}}, {{2, 1}, {3, 3}}, {{1, 0}, {3, 1}}};
  EXPECT_EQ(Region::boxes(bars).boxes().size(), 4u);
  // The region ends before the loop does.
  Index cells = 0;
  for (const Box& bar : Region::boxes(bars).boxes()) cells += bar.count();
  EXPECT_EQ(cells, 8);
  const Region whole = Region::boxes(bars) | Box{{1, 1}, {2, 2}};
  ASSERT_EQ(whole.boxes().size(), 1u);
  EXPECT_EQ(whole, Region::whole({3, 3}));
}

TEST(Region, a_scalar_is_one_cell) {
  const Region scalar = Region::whole({});
  EXPECT_FALSE(scalar.empty());
  EXPECT_EQ(scalar.count(), 1);
  EXPECT_EQ(scalar | scalar, scalar);
  EXPECT_EQ(scalar & scalar, scalar);
  EXPECT_TRUE((scalar - scalar).empty());
  EXPECT_TRUE(scalar.contains(scalar));
  EXPECT_TRUE(scalar.overlaps(scalar));
  EXPECT_TRUE(scalar.contains(Indices{}));
  EXPECT_EQ(Region::boxes({Box{}, Box{}}), scalar);
  EXPECT_EQ(to_string(scalar), "a scalar");
}

TEST(Region, other_dimensions_are_refused_with_both_numbers) {
  const Region line = Region::interval(0, 4), plane = Region::whole({4, 4}), none = Region::interval(3, 3);
  const auto refuses = [](auto&& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_use && error.message().find("1") != std::string::npos &&
             error.message().find("2") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refuses([&] { (void)(line | plane); }));
  EXPECT_TRUE(refuses([&] { (void)(line & plane); }));
  EXPECT_TRUE(refuses([&] { (void)(plane - line); }));
  EXPECT_TRUE(refuses([&] { (void)line.contains(plane); }));
  EXPECT_TRUE(refuses([&] { (void)line.overlaps(plane); }));
  EXPECT_TRUE(refuses([&] { (void)Region::boxes({line.boxes()[0], plane.boxes()[0]}); }));
  EXPECT_FALSE(line == plane);
  EXPECT_FALSE(line.contains(Indices{1, 1}));
  EXPECT_EQ(none | plane, plane);
  EXPECT_TRUE((plane & none).empty());
  EXPECT_TRUE(plane.contains(none));
}

TEST(Region, ends_of_the_index_range_are_no_trap) {
  const Region most = Region::interval(INT64_MIN / 2, INT64_MAX), low = Region::interval(INT64_MIN / 2, 0);
  EXPECT_EQ((most - low) | low, most);
  const Region vast = Region::whole({INT64_MAX, INT64_MAX});
  EXPECT_THROW((void)vast.count(), Error);
  const Region left = Region::whole({INT64_MAX, 5});
  EXPECT_EQ((vast - left) | left, vast);
  EXPECT_EQ(((vast - left) | left).boxes().size(), 1u);
}

TEST(Region, messages_name_the_first_box_and_count_the_others) {
  EXPECT_EQ(to_string(Region()), "no cells");
  EXPECT_EQ(to_string(Region::interval(-3, 512)), "[-3,512)");
  EXPECT_EQ(to_string(Region(Box{{0, 2}, {4, 8}})), "[0,4)x[2,8)");
  EXPECT_EQ(to_string(Region::intervals({{0, 1}, {2, 3}, {4, 5}})), "[0,1) and 2 more");
}

}  // namespace
}  // namespace tranship
