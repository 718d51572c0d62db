// Views that share memory, against sets of bytes.
#include <set>

#include <gtest/gtest.h>

#include <tranship/lower/view_overlap.hpp>

#include "support/random_layouts.hpp"

namespace tranship::test {
namespace {

/// The bytes of every element, one by one; true when one of them comes twice.
bool list_bytes(const StridedView& view, std::set<std::uintptr_t>& out) {
  bool twice = false;
  const bool split = view.imaginary != nullptr;
  const Index unit = split ? size_bytes(part_of(view.type)) : size_bytes(view.type);
  for_each_coordinate(view.extents, [&](const Indices& at) {
    Index offset = 0;
    for (int d = 0; d < at.size(); ++d) offset += at[d] * view.strides[d];
    for (void* plane : {view.data, view.imaginary})
      for (Index b = 0; plane && b < unit; ++b)
        twice |= !out.insert(reinterpret_cast<std::uintptr_t>(plane) + std::uintptr_t(offset * unit + b)).second;
  });
  return twice;
}

StridedView random_view(Random& random, std::byte* memory) {
  StridedView out{.type = random.pick<ElementType>({ElementType::u8, ElementType::f32, ElementType::c64})};
  for (Index d = random.between(1, 3); d > 0; --d) {
    out.extents.push_back(random.between(random.one_in(8) ? 0 : 1, 5));
    out.strides.push_back(random.between(random.one_in(4) ? -9 : 1, 12) * random.between(random.one_in(9) ? 0 : 1, 3));
  }
  out.data = memory + 4 * random.between(0, 60);
  if (is_complex(out.type) && random.one_in(2)) out.imaginary = memory + 4 * random.between(0, 60);
  return out;
}

TEST(ViewOverlap, AgreesWithTheSetsOfTheirBytes) {
  static std::byte memory[4096];
  Random random(7);
  int shared = 0, itself = 0;
  for (int i = 0; i < 4000; ++i) {
    const StridedView a = random_view(random, memory + 2048), b = random_view(random, memory + 2048);
    std::set<std::uintptr_t> of_a, of_b;
    const bool a_twice = list_bytes(a, of_a);
    list_bytes(b, of_b);
    std::vector<std::uintptr_t> both;
    std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(both));
    ASSERT_EQ(overlaps_itself(a), a_twice)
        << i << ": [" << to_string(a.extents) << "] [" << to_string(a.strides) << "]";
    ASSERT_EQ(share_bytes(a, b), !both.empty()) << i;
    ASSERT_EQ(share_bytes(b, a), !both.empty()) << i;
    const ByteRange range = range_of(a);
    ASSERT_EQ(range.upper - range.lower, of_a.empty() ? 0 : *of_a.rbegin() + 1 - *of_a.begin()) << i;
    shared += !both.empty();
    itself += a_twice;
  }
  EXPECT_GT(shared, 400);
  EXPECT_LT(shared, 3600);
  EXPECT_GT(itself, 400);
}

/// The addresses of the bytes of element `at` of one plane.
std::uintptr_t address_of(const StridedView& view, const Indices& at) {
  Index offset = 0;
  for (int d = 0; d < at.size(); ++d) offset += at[d] * view.strides[d];
  return reinterpret_cast<std::uintptr_t>(view.data) + std::uintptr_t(offset * size_bytes(view.type));
}

TEST(ViewOverlap, OutOfStepAgreesWithAllPairsOfElements) {
  static std::byte memory[4096];
  Random random(11);
  int shared = 0, in_step = 0;
  for (int i = 0; i < 20000; ++i) {
    StridedView a{.data = memory + 2048, .type = random.pick<ElementType>({ElementType::u8, ElementType::f32})};
    for (Index d = random.between(1, 3); d > 0; --d) {
      a.extents.push_back(random.between(random.one_in(20) ? 0 : 1, 4));
      a.strides.push_back(random.between(-12, 12));
    }
    StridedView b = a;
    b.data = memory + 2048 + random.between(-16, 16);
    if (random.one_in(4)) {  // the same strides, of elements of another size
      b.type = a.type == ElementType::u8 ? ElementType::f32 : ElementType::u8;
      for (int d = 0; d < a.dims(); ++d) (a.type == ElementType::u8 ? a : b).strides[d] *= 4;
    }
    bool expected = false, any = false;
    for_each_coordinate(a.extents, [&](const Indices& x) {
      for_each_coordinate(b.extents, [&](const Indices& y) {
        const std::uintptr_t mine = address_of(a, x), other = address_of(b, y);
        const bool meet =
            mine < other + std::uintptr_t(size_bytes(b.type)) && other < mine + std::uintptr_t(size_bytes(a.type));
        any |= meet;
        expected |= meet && x != y;
      });
    });
    ASSERT_EQ(share_out_of_step(a, b), expected)
        << i << ": [" << to_string(a.extents) << "] [" << to_string(a.strides) << "]";
    ASSERT_EQ(share_bytes(a, b), any) << i;
    shared += expected;
    in_step += any && !expected;
  }
  EXPECT_GT(shared, 2000);
  EXPECT_GT(in_step, 500);
}

TEST(ViewOverlap, LargeArraysTakeNoLongerThanSmallOnes) {
  // Nothing is at these addresses, and nobody looks there.
  const auto at = [](std::uintptr_t bytes) { return reinterpret_cast<void*>(0x10000 + bytes); };
  const Index n = 1 << 20;
  const StridedView even{.data = at(0), .type = ElementType::f64, .extents = {n, n}, .strides = {2 * n, 2}};
  const StridedView odd{.data = at(8), .type = ElementType::f64, .extents = {n, n}, .strides = {2, 2 * n}};
  const StridedView straddling{.data = at(4), .type = ElementType::f64, .extents = {n, n}, .strides = {2, 2 * n}};
  EXPECT_FALSE(overlaps_itself(even));
  EXPECT_FALSE(share_bytes(even, odd));
  EXPECT_TRUE(share_bytes(even, straddling));
  EXPECT_TRUE(share_bytes(odd, straddling));
  // Strides that are no multiples of each other, and meet only beyond the last element, or just before it.
  const StridedView coprime{.data = at(0), .type = ElementType::u8, .extents = {1000, 1000}, .strides = {1001, 1000}};
  EXPECT_FALSE(overlaps_itself(coprime));
  const StridedView meeting{.data = at(0), .type = ElementType::u8, .extents = {1001, 1002}, .strides = {1001, 1000}};
  EXPECT_TRUE(overlaps_itself(meeting));
  // Strides of 6 and of 10 meet at even distances alone, and only within a row.
  const Index wide = n + 2;
  const StridedView sixes{.data = at(0), .type = ElementType::u8, .extents = {n, n / 8}, .strides = {wide, 6}};
  const StridedView tens{.data = at(1), .type = ElementType::u8, .extents = {n, n / 16}, .strides = {wide, 10}};
  const StridedView tens_even{.data = at(4), .type = ElementType::u8, .extents = {n, n / 16}, .strides = {wide, 10}};
  EXPECT_FALSE(share_bytes(sixes, tens));
  EXPECT_TRUE(share_bytes(sixes, tens_even));
  EXPECT_TRUE(share_out_of_step(meeting, meeting));
  EXPECT_FALSE(share_out_of_step(coprime, coprime));
}

}  // namespace
}  // namespace tranship::test
