#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <tranship/lower/move_bundle.hpp>

namespace tranship::move_list_test {
namespace {

using Random = std::mt19937_64;

Index below(Random& random, Index bound) {
  return Index(random() % std::uint64_t(bound));
}

/// A three-dimensional array of doubles, dense, in row-major order.
struct Cube {
  Index extents[3];
  std::vector<double> cells;

  Cube(Index z, Index y, Index x) : extents{z, y, x}, cells(std::size_t(z * y * x)) {}
  Index stride(int d) const { return d == 2 ? 1 : d == 1 ? extents[2] : extents[1] * extents[2]; }
  Index offset_bytes(const Index* cell) const { return 8 * (cell[0] * stride(0) + cell[1] * stride(1) + cell[2]); }
  std::byte* base() { return reinterpret_cast<std::byte*>(cells.data()); }
  std::byte* at(const Index* cell) { return base() + offset_bytes(cell); }
};

/// The arrays of a test are the slots, by number.
std::vector<std::byte*> bound(const MoveList& list, const std::vector<std::byte*>& arrays) {
  std::vector<std::byte*> out;
  list.bind([&](MoveSide, int slot, int) { return arrays[std::size_t(slot)]; }, 0, out);
  return out;
}
void run_all(const MoveList& list, const std::vector<std::byte*>& arrays) {
  list.run(bound(list, arrays));
}

LoweredMove box_move(const Cube& source, int source_slot, const Index* from, const Cube& target, int target_slot,
                     const Index* to, const Index* extents) {
  LoweredMove move{
      .width = 8, .source = {source_slot, source.offset_bytes(from)}, .target = {target_slot, target.offset_bytes(to)}};
  move.block.dims = 3;
  for (int d = 0; d < 3; ++d) {
    move.block.extents[d] = extents[d];
    move.block.source_strides[d] = 8 * source.stride(d);
    move.block.target_strides[d] = 8 * target.stride(d);
  }
  canonicalise(move.block, 8);
  return move;
}

/// Cuts [0, extent) at two random places, as ghosts, cells and ghosts are.
std::vector<std::pair<Index, Index>> cuts(Random& random, Index extent) {
  Index a = below(random, extent + 1), b = below(random, extent + 1);
  if (a > b) std::swap(a, b);
  return {{0, a}, {a, b}, {b, extent}};
}

TEST(MoveList, boxes_that_make_up_an_array_arrive_whatever_their_order_and_way) {
  Random random(1);
  for (int turn = 0; turn < 200; ++turn) {
    const Index n[3] = {1 + below(random, 9), 1 + below(random, 40), 1 + below(random, 30)};
    Cube target(n[0], n[1], n[2]), expected(n[0], n[1], n[2]);
    Cube source(n[0] + 2, n[1] + 3, n[2] + 5), other(n[0] + 1, n[1] + 1, n[2] + 7);
    std::iota(source.cells.begin(), source.cells.end(), 1.0);
    std::iota(other.cells.begin(), other.cells.end(), -1e6);
    std::vector<LoweredMove> moves;
    for (const auto& [z0, z1] : cuts(random, n[0]))
      for (const auto& [y0, y1] : cuts(random, n[1]))
        for (const auto& [x0, x1] : cuts(random, n[2])) {
          const int slot = 1 + int(below(random, 2));
          Cube& from = slot == 1 ? source : other;
          const Index shift = below(random, 2);
          const Index to[3] = {z0, y0, x0}, at[3] = {z0 + shift, y0 + shift, x0 + shift};
          const Index extents[3] = {z1 - z0, y1 - y0, x1 - x0};
          moves.push_back(box_move(from, slot, at, target, 0, to, extents));
          for (Index z = 0; z < extents[0]; ++z)
            for (Index y = 0; y < extents[1]; ++y)
              for (Index x = 0; x < extents[2]; ++x) {
                const Index s[3] = {at[0] + z, at[1] + y, at[2] + x}, t[3] = {z0 + z, y0 + y, x0 + x};
                std::memcpy(expected.at(t), from.at(s), 8);
              }
        }
    std::shuffle(moves.begin(), moves.end(), random);
    for (const Stores stores : {Stores::plain, Stores::prefetched, Stores::streaming}) {
      const MoveList list(moves, MoveOrder::any, {copy_method(0).simd, stores});
      EXPECT_EQ(list.bytes(), n[0] * n[1] * n[2] * 8);
      std::fill(target.cells.begin(), target.cells.end(), 0);
      run_all(list, {target.base(), source.base(), other.base()});
      ASSERT_EQ(target.cells, expected.cells) << "turn " << turn;
    }
  }
}

TEST(MoveList, ghosts_on_both_ends_of_a_row_are_one_walk) {
  Cube field(10, 20, 30);
  const Index low[3] = {0, 0, 0}, high[3] = {0, 0, 27}, cells[3] = {0, 0, 3}, last_cells[3] = {0, 0, 24};
  const Index extents[3] = {10, 20, 3};
  const MoveList list(
      {box_move(field, 0, last_cells, field, 0, low, extents), box_move(field, 0, cells, field, 0, high, extents)},
      MoveOrder::any, copy_method(0));
  const MoveList::Summary summary = list.summary();
  EXPECT_EQ(summary.moves, 2);
  EXPECT_EQ(summary.walks, 1);
  EXPECT_EQ(summary.run_bytes_min, 24);
  EXPECT_EQ(summary.run_bytes_mean, 24);
}

TEST(MoveList, parts_in_any_order_make_up_the_whole) {
  Random random(2);
  for (const bool together : {false, true}) {
    Cube source(40, 90, 80), target(40, 90, 80);
    std::iota(source.cells.begin(), source.cells.end(), 1.0);
    std::vector<LoweredMove> moves;
    const std::vector<std::pair<Index, Index>> columns =
        together ? std::vector<std::pair<Index, Index>>{{0, 3}, {3, 77}, {77, 80}}
                 : std::vector<std::pair<Index, Index>>{{0, 80}};
    for (const auto& [x0, x1] : columns) {
      const Index at[3] = {0, 0, x0}, extents[3] = {40, 90, x1 - x0};
      moves.push_back(box_move(source, 1, at, target, 0, at, extents));
    }
    const MoveList list(moves, MoveOrder::any, copy_method(0));
    ASSERT_EQ(list.summary().walks, 1);
    ASSERT_GT(list.parts(), 4) << list.bytes();
    std::vector<int> parts(std::size_t(list.parts()));
    std::iota(parts.begin(), parts.end(), 0);
    std::shuffle(parts.begin(), parts.end(), random);
    const int last = parts.back();
    parts.pop_back();
    const std::vector<std::byte*> bases = bound(list, {target.base(), source.base()});
    for (const int part : parts) list.run_part(part, bases);
    EXPECT_NE(target.cells, source.cells) << "nothing is left for part " << last;
    list.run_part(last, bases);
    EXPECT_EQ(target.cells, source.cells);
  }
}

TEST(MoveList, small_lists_have_one_part_and_empty_ones_none_to_do) {
  EXPECT_EQ(MoveList({}, MoveOrder::any, copy_method(0)).parts(), 1);
  run_all(MoveList({}, MoveOrder::any, copy_method(0)), {});
  Cube cube(2, 2, 2), other(2, 2, 2);
  const Index zero[3] = {}, extents[3] = {2, 2, 2};
  EXPECT_EQ(MoveList({box_move(cube, 0, zero, other, 1, zero, extents)}, MoveOrder::any, copy_method(0)).parts(), 1);
}

TEST(MoveList, sums_stay_in_their_order) {
  // (big + small) - big is not big + (small - big).
  double source[3] = {1e16, 1.0, -1e16}, target = 0;
  std::vector<LoweredMove> moves;
  for (Index i = 0; i < 3; ++i)
    moves.push_back({.move = ElementMap::accumulate,
                     .arithmetic = Arithmetic::f64,
                     .width = 8,
                     .source = {0, 8 * i},
                     .target = {1, 0}});
  const std::vector<std::byte*> arrays{reinterpret_cast<std::byte*>(source), reinterpret_cast<std::byte*>(&target)};
  run_all(MoveList(moves, MoveOrder::given, copy_method(0)), arrays);
  EXPECT_EQ(target, ((0 + 1e16) + 1.0) - 1e16);
  std::reverse(moves.begin(), moves.end());
  target = 0;
  run_all(MoveList(moves, MoveOrder::given, copy_method(0)), arrays);
  EXPECT_EQ(target, ((0 - 1e16) + 1.0) + 1e16);
}

TEST(MoveList, a_transpose_has_runs_as_long_as_its_shorter_side) {
  LoweredMove move{.width = 8, .source = {0, 0}, .target = {1, 0}};
  move.block.dims = 2;
  move.block.extents[0] = 40;
  move.block.extents[1] = 12;
  move.block.source_strides[0] = 8;
  move.block.source_strides[1] = 40 * 8;
  move.block.target_strides[0] = 12 * 8;
  move.block.target_strides[1] = 8;
  const MoveList::Summary summary = MoveList({move}, MoveOrder::any, copy_method(0)).summary();
  EXPECT_EQ(summary.run_bytes_mean, 12 * 8);
  EXPECT_EQ(summary.shapes[int(BlockShape::tiles)], 12 * 40 * 8);
}

}  // namespace
}  // namespace tranship::move_list_test
