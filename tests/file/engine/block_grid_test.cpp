// Cutting a part into boxes: every cell once, never more than fit, and the stretches that the heads of files promise.
#include <map>

#include <gtest/gtest.h>

#include <tranship/file/engine/block_grid.hpp>
#include <tranship/file/engine/block_run.hpp>

#include "support/random_layouts.hpp"

namespace tranship {
namespace {

const Indices c_order{0, 1}, fortran_order{1, 0};

Indices ascending(int dims) {
  Indices out;
  for (int d = 0; d < dims; ++d) out.push_back(d);
  return out;
}

Indices descending(int dims) {
  Indices out;
  for (int d = dims - 1; d >= 0; --d) out.push_back(d);
  return out;
}

TEST(BlockGrid, CoversEveryCellOnceInBoxesThatFit) {
  EXPECT_EQ(test::first_fault(0.2,
                              [](std::uint64_t seed) -> std::string {
                                test::Random random(seed);
                                const Indices extents = test::random_extents(random, int(random.between(1, 4)));
                                const int dims = extents.size();
                                const auto order = [&] {
                                  return random.one_in(2) ? ascending(dims) : descending(dims);
                                };
                                const BlockGridOptions options{.extents = extents,
                                                               .source_order = order(),
                                                               .target_order = order(),
                                                               .cells_max = random.between(1, 40),
                                                               .target_run_wanted = random.below(9)};
                                const BlockGrid grid(options);
                                std::map<std::vector<Index>, int> seen;
                                Index cells = 0;
                                for (Index n = 0; n < grid.count(); ++n) {
                                  const Box box = grid.box(n);
                                  if (box.empty() || box.count() > options.cells_max) return "a box of another size";
                                  cells += box.count();
                                  for_each_coordinate(box.extents(), [&](const Indices& at) {
                                    std::vector<Index> cell;
                                    for (int d = 0; d < dims; ++d) cell.push_back(box.lower[d] + at[d]);
                                    ++seen[cell];
                                  });
                                }
                                if (cells != checked_product(extents) || Index(seen.size()) != cells) return "cells";
                                return "";
                              }),
            "");
}

TEST(BlockGrid, SlabsWhereOrdersAgree) {
  const BlockGrid rows({.extents = {1000, 100}, .source_order = c_order, .target_order = c_order, .cells_max = 1000});
  EXPECT_EQ(rows.box_extents(), (Indices{10, 100}));
  const BlockGrid pieces({.extents = {10, 4000}, .source_order = c_order, .target_order = c_order, .cells_max = 1000});
  EXPECT_EQ(pieces.box_extents(), (Indices{1, 1000}));
  const BlockGrid columns(
      {.extents = {100, 1000}, .source_order = fortran_order, .target_order = fortran_order, .cells_max = 1000});
  EXPECT_EQ(columns.box_extents(), (Indices{100, 10}));
}

TEST(BlockGrid, SquaresWhereTheyDiffer) {
  BlockGridOptions options{
      .extents = {10'000, 10'000}, .source_order = c_order, .target_order = fortran_order, .cells_max = 10'000};
  EXPECT_EQ(BlockGrid(options).box_extents(), (Indices{100, 100}));
  options.target_run_wanted = 200;
  EXPECT_EQ(BlockGrid(options).box_extents(), (Indices{200, 50}));
  options.target_run_wanted = 100'000;
  EXPECT_EQ(BlockGrid(options).box_extents(), (Indices{400, 25}));
  // Blocks are numbered along the rows of the source.
  const BlockGrid grid(options);
  EXPECT_EQ(grid.box(0).lower, (Indices{0, 0}));
  EXPECT_EQ(grid.box(1).lower, (Indices{0, 25}));
}

TEST(Stretches, AreTheBytesOfABoxInTheOrderOfTheFile) {
  EXPECT_EQ(test::first_fault(0.1,
                              [](std::uint64_t seed) -> std::string {
                                test::Random random(seed);
                                const Indices extents = test::random_extents(random, int(random.between(1, 4)));
                                if (checked_product(extents) == 0) return "";
                                Box box{extents, extents};
                                for (int d = 0; d < extents.size(); ++d) {
                                  box.lower[d] = random.below(extents[d]);
                                  box.upper[d] = random.between(box.lower[d] + 1, extents[d]);
                                }
                                const StoredPart part{.offset_bytes = 100,
                                                      .order = random.one_in(2) ? NpyOrder::c : NpyOrder::fortran,
                                                      .extents = extents};
                                const Indices strides = view_of(part, ElementType::u8, nullptr).strides;
                                std::vector<Index> expected, found;
                                for_each_coordinate(box.extents(), [&](const Indices& at) {
                                  Index offset = 0;
                                  for (int d = 0; d < at.size(); ++d) offset += (box.lower[d] + at[d]) * strides[d];
                                  for (int byte = 0; byte < 4; ++byte) expected.push_back(100 + offset * 4 + byte);
                                });
                                std::sort(expected.begin(), expected.end());
                                Index in_box = 0, end = 0;
                                bool joined = true;
                                for_each_stretch(part, 4, box, [&](Index offset, Index at, Index bytes) {
                                  joined = joined && at == in_box && offset >= end;
                                  in_box += bytes;
                                  end = offset + bytes;
                                  for (Index i = 0; i < bytes; ++i) found.push_back(offset + i);
                                });
                                return joined && found == expected ? "" : "other stretches";
                              }),
            "");
}

}  // namespace
}  // namespace tranship
