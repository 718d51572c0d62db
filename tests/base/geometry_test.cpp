#include <gtest/gtest.h>

#include <tranship/base/box.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index_map.hpp>
#include <tranship/base/strided_view.hpp>

namespace tranship::geometry_test {
namespace {

template <class F>
Error error_of(F&& f) {
  const Result<void> result = attempt([&] { f(); });
  return result ? Error(ErrorCode::internal, "nothing was thrown") : result.error();
}

/// All boxes of `dims` dimensions within [-1, side + 1), the empty ones included.
std::vector<Box> all_boxes(int dims, Index side) {
  std::vector<Box> out;
  for_each_coordinate(Indices::filled(2 * dims, side + 2), [&](const Indices& at) {
    Box box;
    for (int d = 0; d < dims; ++d) {
      box.lower.push_back(at[2 * d] - 1);
      box.upper.push_back(at[2 * d + 1] - 1);
    }
    out.push_back(box);
  });
  return out;
}

TEST(Errors, AnotherMessageKeepsEverythingElse) {
  Error error(ErrorCode::timeout, "waits");
  error.rank = 1;
  error.peer = 2;
  error.column = 3;
  const Error longer = error.with_message(error.message() + " for rank 2");
  EXPECT_EQ(longer.message(), "waits for rank 2");
  EXPECT_EQ(longer.code(), ErrorCode::timeout);
  EXPECT_EQ(longer.rank, 1);
  EXPECT_EQ(longer.peer, 2);
  EXPECT_EQ(longer.column, 3);
}

TEST(Indices, RefuseANinthDimension) {
  EXPECT_EQ(Indices::filled(8, 1).size(), 8);
  EXPECT_EQ(error_of([] { Indices::filled(9, 1); }).code(), ErrorCode::unsupported);
}

TEST(Indices, ProductsThatOverflowAreRefused) {
  EXPECT_EQ(checked_product({1 << 30, 1 << 30}), Index(1) << 60);
  EXPECT_EQ(checked_product({0, INT64_MAX, INT64_MAX}), 0);
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(error_of([] { checked_product({Index(1) << 32, Index(1) << 31}); }).code(), ErrorCode::overflow);
  EXPECT_STREQ(error_of([] { checked_product({3, -4}); }).what(), "extent -4 of dimension 1 is negative");
  EXPECT_EQ(error_of([] { checked_multiply(INT64_MAX, 2); }).code(), ErrorCode::overflow);
  EXPECT_EQ(error_of([] { checked_add(INT64_MAX, 1); }).code(), ErrorCode::overflow);
}

TEST(Indices, FloorDivisionRoundsDown) {
  for (Index a = -20; a <= 20; ++a)
    for (Index b = 1; b <= 7; ++b) {
      EXPECT_EQ(floor_divide(a, b) * b + floor_modulo(a, b), a);
      EXPECT_GE(floor_modulo(a, b), 0);
      EXPECT_LT(floor_modulo(a, b), b);
      EXPECT_EQ(ceil_divide(a, b), floor_divide(a + b - 1, b));
    }
}

TEST(Indices, CoordinatesGoRowMajorAndEmptyExtentsHaveNone) {
  std::vector<Indices> seen;
  for_each_coordinate({2, 3}, [&](const Indices& at) { seen.push_back(at); });
  EXPECT_EQ(seen, (std::vector<Indices>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}));
  int count = 0;
  for_each_coordinate({4, 0}, [&](const Indices&) { ++count; });
  EXPECT_EQ(count, 0);
  for_each_coordinate({}, [&](const Indices&) { ++count; });
  EXPECT_EQ(count, 1);
}

TEST(Box, ProductsHaveOneIntervalOfEachList) {
  EXPECT_EQ(products({{{0, 2}, {4, 5}}, {{1, 3}}}), (std::vector<Box>{{{0, 1}, {2, 3}}, {{4, 1}, {5, 3}}}));
  EXPECT_EQ(products({{{0, 2}}, {{1, 3}, {7, 8}}}), (std::vector<Box>{{{0, 1}, {2, 3}}, {{0, 7}, {2, 8}}}));
  EXPECT_TRUE(products({{{0, 2}}, {}}).empty());
}

TEST(Box, SubtractionCoversExactlyWhatIsLeft) {
  const std::vector<Box> boxes = all_boxes(2, 2);
  for (const Box& a : boxes)
    for (const Box& b : boxes) {
      const std::vector<Box> rest = subtract(a, b);
      EXPECT_LE(rest.size(), 4u);
      for_each_coordinate({5, 5}, [&](const Indices& at) {
        const Indices cell = {at[0] - 1, at[1] - 1};
        int covered = 0;
        for (const Box& box : rest) covered += box.contains(cell);
        ASSERT_EQ(covered, a.contains(cell) && !b.contains(cell)) << to_string(a) << " without " << to_string(b);
      });
    }
}

TEST(Box, DisjointUnionCoversEveryCellOnce) {
  const std::vector<Box> boxes = all_boxes(1, 4);
  for (const Box& a : boxes)
    for (const Box& b : boxes)
      for (const Box& hole : boxes) {
        const std::vector<Box> all = disjoint_union({a, b}, hole);
        for (Index i = -1; i < 6; ++i) {
          int covered = 0;
          for (const Box& box : all) covered += box.contains({i});
          ASSERT_EQ(covered, (a.contains({i}) || b.contains({i})) && !hole.contains({i}));
        }
      }
}

/// All signed permutations of two dimensions, with some offsets.
std::vector<IndexMap> all_maps() {
  std::vector<IndexMap> out;
  for (const Indices& dims : {Indices{0, 1}, Indices{1, 0}})
    for (const Index s0 : {-1, 1})
      for (const Index s1 : {-1, 1})
        for (const Index offset : {-6, 0, 4}) out.push_back(IndexMap(dims, {s0, s1}, {offset, 2 - offset}));
  return out;
}

TEST(IndexMap, ComposesAndInverts) {
  for (const IndexMap& f : all_maps()) {
    EXPECT_EQ(f.followed_by(f.inverse()), IndexMap::identity(2));
    EXPECT_EQ(f.inverse().followed_by(f), IndexMap::identity(2));
    for (const IndexMap& g : all_maps())
      for (const Indices& cell : {Indices{0, 0}, Indices{3, -2}}) {
        EXPECT_EQ(f.followed_by(g).apply(cell), g.apply(f.apply(cell)));
      }
  }
}

TEST(IndexMap, KeepsInterfacesBetweenTheirCells) {
  for (const IndexMap& f : all_maps())
    for (int d = 0; d < 2; ++d)
      for (Index i = -3; i <= 3; ++i) {
        // Interface i lies between cells i - 1 and i, on both sides of the map.
        const Index low = std::min(f.apply(d, i - 1, Points::cells), f.apply(d, i, Points::cells));
        EXPECT_EQ(f.apply(d, i, Points::interfaces), low + 1);
      }
  // A reversed axis of n cells.
  const IndexMap reversed({0}, {-1}, {2 * 5});
  EXPECT_EQ(reversed.apply(0, 0, Points::cells), 4);
  EXPECT_EQ(reversed.apply(0, 0, Points::interfaces), 5);
}

TEST(IndexMap, RefusesWhatIsNoSignedPermutation) {
  EXPECT_EQ(error_of([] { IndexMap({0, 0}, {1, 1}, {0, 0}); }).code(), ErrorCode::invalid_use);
  EXPECT_EQ(error_of([] { IndexMap({0, 1}, {1, 2}, {0, 0}); }).code(), ErrorCode::invalid_use);
  EXPECT_EQ(error_of([] { IndexMap({0, 1}, {1, 1}, {0, 1}); }).code(), ErrorCode::invalid_use);
  EXPECT_EQ(error_of([] { IndexMap({0, 1}, {1}, {0, 0}); }).code(), ErrorCode::invalid_use);
}

TEST(ElementType, NamesReadBack) {
  for (int i = 0; i <= int(ElementType::c256); ++i) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_EQ(element_type_named(name_of(type)).value(), type);
    EXPECT_EQ(element_type_of_numpy(numpy_kind(type)).value(), type);
    EXPECT_EQ(is_complex(type), size_bytes(part_of(type)) * 2 == size_bytes(type));
  }
  EXPECT_EQ(element_type_named("f65").error().code(), ErrorCode::bad_text);
  EXPECT_EQ(element_type_of_numpy("O").error().code(), ErrorCode::bad_file);
}

TEST(StridedView, DenseStridesFollowTheOrder) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Indices{12, 4, 1}));
  EXPECT_EQ(dense_strides({2, 3, 4}, {2, 0, 1}), (Indices{3, 1, 6}));
  EXPECT_EQ(row_major_strides({2, 0, 4}), (Indices{4, 4, 1}));
}

TEST(Result, HoldsAValueOrThrowsItsError) {
  EXPECT_EQ(Result<int>(3).value(), 3);
  const Result<int> failed = Error(ErrorCode::io, "no such disk");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(error_of([&] { (void)failed.value(); }).code(), ErrorCode::io);
  EXPECT_STREQ(name_of(ErrorCode::peer_lost), "peer_lost");
}

TEST(FunctionRef, CallsWhatItRefersTo) {
  int calls = 0;
  const auto count = [&](int by) { return calls += by; };
  const FunctionRef<int(int)> ref = count;
  ref(2);
  EXPECT_EQ(ref(3), 5);
}

}  // namespace
}  // namespace tranship::geometry_test
