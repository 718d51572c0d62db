// Halo exchanges against the oracle: stencils, depths, edges, fused fields, star forests.
#include <algorithm>

#include <gtest/gtest.h>

#include "support/oracle.hpp"
#include "support/random_layouts.hpp"

namespace tranship::halo_test {
namespace {

using namespace test;

using Fields = std::vector<ArraySpec>;

ArraySpec array_of(Distribution distribution) {
  return {ElementType::i64, std::move(distribution)};
}

const Stencil star{StencilKind::star};

Partition torus(Partition partition, Index width) {
  return partition.with_overlap(width, width, EdgePolicy::toroidal);
}

TEST(Halo, BoxAndStarOnATorus) {
  for (const Index width : {1, 2, 3}) {
    const Fields field{array_of({{9, 8}, grid(3, 2), {torus(block(), width), torus(block(), width)}})};
    EXPECT_EQ(halo_fault(field), "");
    EXPECT_EQ(halo_fault(field, {.stencil = star}), "");
    for (Index depth = 0; depth <= width; ++depth)
      EXPECT_EQ(halo_fault(field, {.depth_low = {depth, width}, .depth_high = {width - depth, depth}}), "");
  }
}

// The cases that go wrong elsewhere: a rank that is its own neighbour, or the same neighbour on both sides.
TEST(Halo, FewRanksOnAPeriodicAxis) {
  for (const Index ranks : {1, 2})
    for (const Index width : {1, 2, 4, 5, 9})
      for (const Index extent : {1, 2, 4, 5}) {
        EXPECT_EQ(halo_fault(Fields{array_of({{extent}, grid(ranks), {torus(block(), width)}})}), "");
        EXPECT_EQ(
            halo_fault(Fields{array_of({{extent, 3}, grid(ranks, 1), {torus(block(), width), torus(whole(), 1)}})}),
            "");
      }
}

TEST(Halo, CellsOfAnOverlapThatGoesAroundATorusManyTimes) {
  for (const Partition& cut : {block(), cyclic(1), cyclic(2), block().with_interfaces()})
    for (const Box& cells : {Box{{0}, {5}}, Box{{1}, {3}}, Box{{4}, {5}}, Box{{2}, {2}}})
      EXPECT_EQ(halo_fault(Fields{array_of({{5}, grid(2), {torus(cut, 23)}})}, {.cells = {{cells}}}), "");
}

TEST(Halo, WiderThanTheNeighboursBlocksAndTheArray) {
  for (const EdgePolicy edge : {EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero, EdgePolicy::replicate,
                                EdgePolicy::replicate_local, EdgePolicy::open})
    for (const Index width : {2, 5, 13})
      for (const Partition& cut : {block(), block(Remainder::ceil), cyclic(1), cyclic(2), irregular({0, 1, 1, 4, 5})}) {
        const Fields field{array_of({{5}, grid(4), {cut.with_overlap(width, width + 1, edge)}})};
        EXPECT_EQ(halo_fault(field), "");
      }
}

TEST(Halo, FlatArraysAndEmptyParts) {
  const Fields flat{array_of({{6, 6, 1}, grid(2, 2, 1), {torus(block(), 2), torus(block(), 2), whole()}})};
  EXPECT_EQ(halo_fault(flat), "");
  EXPECT_EQ(halo_fault(flat, {.stencil = star}), "");
  const Fields thin{array_of({{6, 6, 1}, grid(2, 2, 1), {torus(block(), 2), torus(block(), 2), torus(whole(), 2)}})};
  EXPECT_EQ(halo_fault(thin), "");
  for (const Index extent : {0, 1, 3})
    EXPECT_EQ(halo_fault(Fields{array_of({{extent, 4}, grid(5, 2), {torus(block(), 2), torus(cyclic(1), 1)}})}), "");
}

TEST(Halo, FieldsOfDifferentShapesAreFused) {
  const Partition rows = torus(block(), 1);
  const Fields fields{
      array_of({{8, 8}, grid(2, 2), {rows, rows}}),
      {ElementType::f32, {{12, 5}, grid(2, 2), {torus(cyclic(2), 3), rows}}},
      {ElementType::c128, {{6, 6}, Grid({2, 3}, {.ranks = {5, 1, 4, 0, 3, 2}}), {rows, torus(block(), 2)}}}};
  EXPECT_EQ(halo_fault(fields), "");
  EXPECT_EQ(halo_fault(fields, {.stencil = star, .depth_low = {1, 0}}), "");
}

// Both neighbours own the point between them: it is never exchanged.
TEST(Halo, SharedInterfacesAreNeverExchanged) {
  for (const Index ranks : {1, 2, 4})
    for (const Index width : {1, 2, 3, 7})
      for (const EdgePolicy edge : {EdgePolicy::toroidal, EdgePolicy::replicate, EdgePolicy::truncate}) {
        const Partition faces = block().with_interfaces().with_overlap(width, width, edge);
        EXPECT_EQ(halo_fault(Fields{array_of({{9}, grid(ranks), {faces}})}), "");
        EXPECT_EQ(halo_fault(Fields{array_of({{9, 4}, grid(ranks, 2), {faces, torus(block(), 1)}})}), "");
        EXPECT_EQ(halo_fault(Fields{array_of({{9, 5}, grid(ranks, 2), {faces, faces}})}), "");
      }
}

// Four ranks that fill what they own with their numbers: rank 0 reads row 3 from the rank below it, not from the one
// beyond the corner, though both own the point in its own last column.
TEST(Halo, SharedInterfacesComeFromThePartThatIsNearestInEachDimension) {
  const Partition faces = block().with_interfaces().with_overlap(1, 1, EdgePolicy::open);
  const Fields field{array_of({{5, 5}, grid(2, 2), {faces, faces}})};
  Plans plans;
  for (Rank r = 0; r < 4; ++r) plans.push_back(plan_halo(field, r));
  Memory memory = memory_for(plans, untouched);
  for (Rank r = 0; r < 4; ++r) {
    Index i = 0;
    for_each_coordinate(field[0].distribution.local_extents(r), [&](const Indices& local) {
      if (field[0].distribution.cell_of(r, local).owned) memory[r][0][i] = r;
      ++i;
    });
  }
  PlanInterpreter(plans).apply(memory);
  const auto at = [&](Index y, Index x) { return memory[0][0][y * 5 + x]; };
  for (const Index k : {1, 2, 3}) {
    EXPECT_EQ(at(k, k), 0) << k;
    EXPECT_EQ(at(4, k), 2) << k;
    EXPECT_EQ(at(k, 4), 1) << k;
  }
  EXPECT_EQ(at(4, 4), 3);
  EXPECT_EQ(at(0, 3), untouched);
}

// What is asked for does not change which of two owners is read, or both ends would disagree.
TEST(Halo, PartsOfTheGhostsOfInterfaces) {
  const Fields boxed{array_of({{3, 4}, grid(2, 2), {block().with_interfaces(), block().with_overlap(0, 1)}})};
  EXPECT_EQ(halo_fault(boxed, {.cells = {{Box{{1, 0}, {2, 4}}}}}), "");
  const Fields reached{array_of(
      {{4, 4},
       grid(2, 2),
       {irregular({0, 2, 3}).with_interfaces().with_overlap(1, 0, EdgePolicy::open), block().with_overlap(1, 1)}})};
  EXPECT_EQ(halo_fault(reached, {.stencil = {StencilKind::offsets, {{-1, 1}, {0, 1}}}}), "");
}

TEST(Halo, OffsetsWantExactlyWhatSomeOwnedCellReaches) {
  const Fields field{array_of({{6, 7}, grid(2, 3), {torus(block(), 2), torus(block(), 2)}})};
  for (const std::vector<Indices>& offsets :
       {std::vector<Indices>{{0, 1}}, {{1, 1}, {-1, -1}}, {{2, 0}, {0, -2}, {2, 0}}, {{0, 0}}, {}})
    EXPECT_EQ(halo_fault(field, {.stencil = {StencilKind::offsets, offsets}}), "");
}

// A cell beyond an edge in one dimension and beyond a neighbour in another copies a cell that the neighbour owns, which
// no offset may ask for.
TEST(Halo, OffsetsBeyondReplicatedEdges) {
  for (const EdgePolicy edge : {EdgePolicy::replicate, EdgePolicy::replicate_local}) {
    const Partition cut = block().with_overlap(2, 2, edge);
    const Fields field{array_of({{3, 6}, grid(3, 2), {cut, cut}})};
    for (const std::vector<Indices>& offsets : {std::vector<Indices>{{1, 1}}, {{-2, 1}, {1, -2}}, {{2, 2}, {-2, -2}}})
      EXPECT_EQ(halo_fault(field, {.stencil = {StencilKind::offsets, offsets}}), "");
  }
}

Distribution random_halo_array(Random& random, int dims) {
  for (;;) {
    Distribution array = random_distribution(random, random_extents(random, dims), {.overlap_max = 4});
    if (!array.replicated()) return array;
  }
}

/// A stencil and depths that all fields can serve.
HaloOptions random_options(Random& random, const Fields& fields) {
  const int dims = fields[0].distribution.dims();
  Indices low = Indices::filled(dims, 99), high = low;
  for (const ArraySpec& field : fields)
    for (int d = 0; d < dims; ++d) {
      const Overlap& overlap = field.distribution.axis(d).partition().overlap;
      low[d] = std::min(low[d], overlap.left.width);
      high[d] = std::min(high[d], overlap.right.width);
    }
  HaloOptions out;
  if (random.one_in(2))
    for (int d = 0; d < dims; ++d) {
      out.depth_low.push_back(random.between(0, low[d]));
      out.depth_high.push_back(random.between(0, high[d]));
    }
  switch (random.below(3)) {
    case 0:
      break;
    case 1:
      out.stencil = star;
      break;
    case 2:
      out.stencil.kind = StencilKind::offsets;
      for (Index count = random.between(0, 4); count > 0; --count) {
        Indices offset;
        for (int d = 0; d < dims; ++d) offset.push_back(random.between(-low[d], high[d]));
        out.stencil.offsets.push_back(offset);
      }
      break;
  }
  return out;
}

TEST(Halo, RandomLayouts) {
  EXPECT_EQ(first_fault(0.4,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const int dims = int(random.between(1, 4));
                          Fields fields;
                          for (Index count = random.between(1, 2); count > 0; --count)
                            fields.push_back(array_of(random_halo_array(random, dims)));
                          return halo_fault(fields, random_options(random, fields));
                        }),
            "");
}

std::vector<Box> random_boxes(Random& random, const Indices& extents) {
  std::vector<Box> boxes;
  for (Index count = random.between(0, 3); count > 0; --count) {
    Box box;
    for (int d = 0; d < extents.size(); ++d) {
      box.lower.push_back(random.between(0, extents[d]));
      box.upper.push_back(random.between(box.lower[d], extents[d]));
    }
    if (!box.empty()) boxes.push_back(box);
  }
  return disjoint_union(boxes, {extents, extents});
}

TEST(Halo, OfSomeCellsOnly) {
  EXPECT_EQ(first_fault(0.4,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const int dims = int(random.between(1, 3));
                          Fields fields;
                          for (Index count = random.between(1, 2); count > 0; --count)
                            fields.push_back(array_of(random_halo_array(random, dims)));
                          HaloOptions options = random_options(random, fields);
                          for (const ArraySpec& field : fields)
                            options.cells.push_back(random_boxes(random, field.distribution.extents()));
                          return halo_fault(fields, options);
                        }),
            "");
  EXPECT_EQ(first_fault(0.2,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const Indices extents = random_extents(random, int(random.between(1, 3)));
                          const Fields fields{array_of(
                              random_indexed(random, extents, int(random.between(1, extents.size())), 3, {0, 1, 2}))};
                          return halo_fault(fields,
                                            {.cells = {random_boxes(random, {fields[0].distribution.id_count()})}});
                        }),
            "");
}

TEST(Halo, StarForests) {
  EXPECT_EQ(first_fault(0.2,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          Fields fields;
                          for (Index count = random.between(1, 3); count > 0; --count) {
                            const Indices extents = random_extents(random, int(random.between(1, 3)));
                            std::vector<Rank> ranks{0, 1, 2, 3, 4, 5};
                            random.shuffle(ranks);
                            ranks.resize(random.between(1, 6));
                            fields.push_back(array_of(random_indexed(
                                random, extents, int(random.between(1, extents.size())), Index(ranks.size()), ranks)));
                          }
                          return halo_fault(fields);
                        }),
            "");
}

TEST(Halo, AStarForestBesideAStructuredField) {
  Random random(1);
  const Fields fields{array_of(random_indexed(random, {20, 3}, 1, 4, {2, 0, 1, 3})),
                      array_of({{10, 4}, grid(2, 2), {torus(block(), 1), torus(cyclic(1), 1)}})};
  EXPECT_EQ(halo_fault(fields), "");
}

}  // namespace
}  // namespace tranship::halo_test
