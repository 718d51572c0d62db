// What planning refuses, with the code and with both numbers in the message.
#include <gtest/gtest.h>

#include <tranship/plan/halo.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship::plan_errors_test {
namespace {

using Fields = std::vector<ArraySpec>;

template <class F>
void expect_error(ErrorCode code, const std::vector<std::string>& words, F&& f) {
  try {
    f();
    ADD_FAILURE() << "no error; expected " << name_of(code);
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.code()), std::string(name_of(code))) << error.what();
    for (const std::string& word : words)
      EXPECT_NE(error.message().find(word), std::string::npos) << "'" << word << "' is not in: " << error.what();
  }
}

ArraySpec array_of(Distribution distribution) {
  return {ElementType::f64, std::move(distribution)};
}

ArraySpec line(Index extent, Index ranks, Partition partition) {
  return array_of({{extent}, grid(ranks), {std::move(partition)}});
}

TEST(RedistributionErrors, ExtentsAndTypesMustAgree) {
  expect_error(ErrorCode::mismatch, {"[10]", "[11]"},
               [] { plan_redistribution(line(10, 2, block()), line(11, 2, block()), 0); });
  expect_error(ErrorCode::mismatch, {"[10]", "[2, 5]"}, [] {
    plan_redistribution(line(10, 2, block()), array_of({{2, 5}, grid(1, 2), {whole(), block()}}), 0);
  });
  ArraySpec floats = line(10, 2, block());
  floats.type = ElementType::f32;
  expect_error(ErrorCode::mismatch, {"f64", "f32"}, [&] { plan_redistribution(line(10, 2, block()), floats, 0); });
}

TEST(RedistributionErrors, ACellThatNobodyOwns) {
  const ArraySpec some = array_of(Distribution::indexed({4}, 1, grid(1), {{{0, 1, 3}, {}}}));
  expect_error(ErrorCode::mismatch, {"rank 0", "[2]"}, [&] { plan_redistribution(some, line(4, 1, block()), 0); });
}

TEST(HaloErrors, CellsHaveTheDimensionsOfTheirArrays) {
  const Partition cut = block().with_overlap(1, 1, EdgePolicy::toroidal);
  const Fields fields{line(8, 2, cut), array_of({{8, 8}, grid(2, 1), {cut, whole()}}),
                      array_of(Distribution::indexed({2, 3}, 1, grid(2), {{{0}, {1}}, {{1}, {0}}}))};
  const std::vector<Box> one = {Box{{2}, {4}}}, two = {Box{{0, 0}, {8, 8}}};
  plan_halo(fields, 0, {.cells = {one, two, one}});
  expect_error(ErrorCode::invalid_use, {"2 dimensions", "have 1"}, [&] {
    plan_halo(fields, 0, {.cells = {two, two, one}});
  });
  expect_error(ErrorCode::invalid_use, {"1 dimension", "have 2"}, [&] {
    plan_halo(fields, 0, {.cells = {one, one, one}});
  });
  expect_error(ErrorCode::invalid_use, {"2 dimensions", "have 1"}, [&] {
    plan_halo(fields, 0, {.cells = {one, two, two}});
  });
}

TEST(HaloErrors, DepthsMustBeStored) {
  const Fields fields{
      array_of({{8, 8}, grid(2, 2), {block().with_overlap(2, 1, EdgePolicy::toroidal), block().with_overlap(1, 3)}})};
  expect_error(ErrorCode::invalid_use, {"3 cells to the left in dimension 0", "stores 2"}, [&] {
    plan_halo(fields, 0, {.depth_low = {3, 1}});
  });
  expect_error(ErrorCode::invalid_use, {"4 cells to the right in dimension 1", "stores 3"}, [&] {
    plan_halo(fields, 0, {.depth_high = {1, 4}});
  });
  expect_error(ErrorCode::invalid_use, {"for 1 dimension", "the array has 2"},
               [&] { plan_halo(fields, 0, {.depth_low = {1}}); });
  expect_error(ErrorCode::invalid_use, {"-1", "dimension 1"}, [&] { plan_halo(fields, 0, {.depth_high = {0, -1}}); });
  EXPECT_NO_THROW(plan_halo(fields, 0, {.depth = 1}));
  expect_error(ErrorCode::invalid_use, {"2 cells to the right in dimension 0", "stores 1"},
               [&] { plan_halo(fields, 0, {.depth = 2}); });
  // A rank that holds nothing is told the same.
  expect_error(ErrorCode::invalid_use, {"3", "2"}, [&] { plan_halo(fields, 99, {.depth_low = {3, 1}}); });
}

TEST(HaloErrors, OneDepthLeavesOutSidesWithoutOverlap) {
  const Fields fields{
      array_of({{8, 8, 8}, grid(2, 2, 1), {block().with_overlap(2, 2), block().with_overlap(0, 3), whole()}})};
  EXPECT_NO_THROW(plan_halo(fields, 0, {.depth = 2}));
  expect_error(ErrorCode::invalid_use, {"3 cells to the left in dimension 0", "stores 2"},
               [&] { plan_halo(fields, 0, {.depth = 3}); });
}

TEST(HaloErrors, OffsetsMustBeStored) {
  const Fields fields{line(8, 2, block().with_overlap(1, 2))};
  auto with = [&](const Indices& offset) {
    return [&fields, offset] { plan_halo(fields, 0, {.stencil = {StencilKind::offsets, {{0}, offset}}}); };
  };
  expect_error(ErrorCode::invalid_use, {"2 cells to the left", "stores 1"}, with({-2}));
  expect_error(ErrorCode::invalid_use, {"3 cells to the right", "stores 2"}, with({3}));
  expect_error(ErrorCode::invalid_use, {"offset has 2 dimensions", "the array has 1"}, with({1, 0}));
}

TEST(HaloErrors, ReplicatedArraysHaveNoHalo) {
  const Partition cut = block().with_overlap(1, 1, EdgePolicy::toroidal);
  expect_error(ErrorCode::unsupported, {"array 1", "replicated"}, [&] {
    plan_halo(Fields{line(8, 2, cut), array_of({{8}, Grid({2}, {.replicas = 2}), {cut}})}, 0);
  });
  expect_error(ErrorCode::unsupported, {"array 0", "replicated"}, [&] {
    plan_halo(Fields{array_of({{8, 4}, grid(2, 2), {cut, whole()}})}, 0);
  });
}

class TiledHaloErrors : public ::testing::Test {
 protected:
  static ArraySpec square(Index ny, Index nx, Points y = Points::cells, Points x = Points::cells) {
    Partition rows = block().with_overlap(1, 1, EdgePolicy::open), columns = rows;
    rows.points = y;
    columns.points = x;
    return array_of({{ny, nx}, grid(1, 1), {rows, columns}});
  }
  static TiledField field(const ArraySpec& array) { return {std::vector<ArraySpec>(6, array), {0, 1}}; }

  void expect(ErrorCode code, const std::vector<std::string>& words, const std::vector<TiledField>& fields,
              const std::vector<std::vector<int>>& vectors = {}) {
    TiledHaloOptions options;
    for (const std::vector<int>& vector : vectors) {
      auto& along = options.vectors.emplace_back();
      for (const int field : vector) along.push_back({.field = field, .along = int(along.size())});
    }
    expect_error(code, words, [&] { plan_halo(tiling_, fields, 0, options); });
  }

  Tiling tiling_ = cubed_sphere(4);
};

TEST_F(TiledHaloErrors, Vectors) {
  const std::vector<TiledField> three(3, field(square(4, 4)));
  expect(ErrorCode::invalid_use, {"3 components", "2 dimensions"}, three, {{0, 1, 2}});
  expect(ErrorCode::invalid_use, {"field 3", "there are 3"}, three, {{0, 3}});
  expect(ErrorCode::invalid_use, {"field -1", "there are 3"}, three, {{-1, 0}});
  expect(ErrorCode::invalid_use, {"field 1", "vector 0", "vector 1"}, three, {{0, 1}, {1, 2}});
  expect(ErrorCode::invalid_use, {"field 2", "vector 0"}, three, {{2, 2}});
  const auto expect_of = [&](const std::vector<std::string>& words, const std::vector<VectorField>& vector) {
    expect_error(ErrorCode::invalid_use, words, [&] { plan_halo(tiling_, three, 0, {.vectors = {vector}}); });
  };
  expect_of({"field 1", "dimension 2", "there are 2"}, {{.field = 0, .along = 0}, {.field = 1, .along = 2}});
  expect_of({"fields 0 and 1", "dimension 1"}, {{.field = 0, .along = 1}, {.field = 1, .along = 1}});

  ArraySpec floats = square(4, 4);
  floats.type = ElementType::f32;
  expect(ErrorCode::mismatch, {"f64", "f32"}, {field(square(4, 4)), field(floats)}, {{0, 1}});
  ArraySpec flags = square(4, 4);
  flags.type = ElementType::bool8;
  expect(ErrorCode::invalid_use, {"bool8", "negated"}, {field(flags), field(flags)}, {{0, 1}});

  const Partition open = block().with_overlap(1, 1, EdgePolicy::open);
  auto levels = [&](Index count) { return field(array_of({{4, 4, count}, grid(1, 1, 1), {open, open, whole()}})); };
  expect(ErrorCode::mismatch, {"3 and 2 dimensions"}, {levels(5), field(square(4, 4))}, {{0, 1}});
  expect(ErrorCode::mismatch, {"5 cells", "6"}, {levels(5), levels(6)}, {{0, 1}});
}

TEST_F(TiledHaloErrors, StaggeringThatAnEdgeTurnsIntoAnother) {
  expect(ErrorCode::invalid_use, {"interfaces", "cells"}, {field(square(4, 5, Points::cells, Points::interfaces))});
  expect(ErrorCode::invalid_use, {"interfaces", "cells"},
         {field(square(4, 5, Points::cells, Points::interfaces)), field(square(4, 4))}, {{0, 1}});
}

TEST_F(TiledHaloErrors, ShapesOfFields) {
  TiledField five = field(square(4, 4));
  five.tiles.pop_back();
  expect(ErrorCode::invalid_use, {"5 arrays", "6 tiles"}, {five});
  TiledField one_dim = field(square(4, 4));
  one_dim.tile_dims = {0};
  expect(ErrorCode::invalid_use, {"1 tile dimension,", "has 2"}, {one_dim});
  for (const std::vector<int>& dims : {std::vector<int>{0, 2}, {0, -1}, {1, 1}}) {
    TiledField wrong = field(square(4, 4));
    wrong.tile_dims = dims;
    expect(ErrorCode::invalid_use, {"dimension " + std::to_string(dims[1]), "array of 2"}, {wrong});
  }
  expect(ErrorCode::mismatch, {"5 cells", "has 4"}, {field(square(4, 5))});
  expect(ErrorCode::unsupported, {"field 0", "indexed"},
         {field(array_of(Distribution::indexed({4, 4}, 1, grid(1), {{{0, 1, 2, 3}, {}}})))});
  const Partition open = block().with_overlap(1, 1, EdgePolicy::open);
  expect(ErrorCode::unsupported, {"array 0", "replicated"},
         {field(array_of({{4, 4, 2}, grid(1, 1, 2), {open, open, whole()}}))});
}

TEST_F(TiledHaloErrors, TheTilingContinuesOnlyOpenEdges) {
  for (const EdgePolicy edge : {EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero, EdgePolicy::replicate,
                                EdgePolicy::replicate_local}) {
    const Partition closed = block().with_overlap({1, EdgePolicy::open}, {1, edge});
    const Partition open = block().with_overlap(1, 1, EdgePolicy::open);
    expect(ErrorCode::invalid_use, {name_of(edge), "tile dimension 1"},
           {field(array_of({{4, 4}, grid(1, 1), {open, closed}}))});
  }
}

TEST_F(TiledHaloErrors, DepthsMustBeStored) {
  const std::vector<TiledField> fields{field(square(4, 4))};
  expect_error(ErrorCode::invalid_use, {"2 cells", "stores 1"}, [&] {
    plan_halo(tiling_, fields, 0, {HaloOptions{.depth_low = {1, 2}}});
  });
}

}  // namespace
}  // namespace tranship::plan_errors_test
