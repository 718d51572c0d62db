// Combinations of rows against plain loops of C++ numbers, of every type at odd counts and addresses.
#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/memory/combination.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship {
namespace {

constexpr Combine combines[] = {Combine::sum, Combine::product, Combine::minimum, Combine::maximum};

template <class T>
struct PartOf {
  using Type = T;
};
template <class T>
struct PartOf<std::complex<T>> {
  using Type = T;
};

template <class T>
T combined(Combine combine, T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return combine == Combine::sum || combine == Combine::maximum ? a || b : a && b;
  else if (combine == Combine::sum)
    return static_cast<T>(a + b);
  else if (combine == Combine::product)
    return static_cast<T>(a * b);
  else if constexpr (std::is_arithmetic_v<T>)
    return combine == Combine::minimum ? std::min(a, b) : std::max(a, b);
  return a;
}

/// Small enough for sums and products to be exact in every type.
template <class T>
T random_value(std::mt19937_64& random) {
  const auto part = [&] {
    return static_cast<int>(random() % 11) - (std::is_signed_v<typename PartOf<T>::Type> ? 5 : 0);
  };
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(part());
  else
    return T(static_cast<typename PartOf<T>::Type>(part()), static_cast<typename PartOf<T>::Type>(part()));
}

template <class T>
class Combinations : public ::testing::Test {};
using Numbers = ::testing::Types<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                 std::uint32_t, std::int64_t, std::uint64_t, float, double, long double,
                                 std::complex<float>, std::complex<double>, std::complex<long double>>;
TYPED_TEST_SUITE(Combinations, Numbers);

TYPED_TEST(Combinations, AgreeWithAPlainLoop) {
  using T = TypeParam;
  constexpr ElementType type = element_type_of<T>;
  std::mt19937_64 random(3);
  for (const Combine combine : combines) {
    if (!detail::can_combine(combine, type)) continue;
    for (const int count : {0, 1, 2, 3, 7, 8, 15, 33, 100, 257})
      for (const int shift : {0, 1}) {
        const std::size_t size = count * sizeof(T);
        const std::unique_ptr<T[]> a(new T[count]), b(new T[count]);
        for (int i = 0; i < count; ++i) a[i] = random_value<T>(random), b[i] = random_value<T>(random);
        std::vector<unsigned char> source(size + 2), target(size + 2, 0xa5);
        std::copy_n(reinterpret_cast<const unsigned char*>(a.get()), size, source.data() + shift);
        std::copy_n(reinterpret_cast<const unsigned char*>(b.get()), size, target.data() + shift);
        detail::combine_row(combine, type, count, source.data() + shift, target.data() + shift);
        for (int i = 0; i < count; ++i) {
          T out;
          std::memcpy(&out, &target[shift + i * sizeof(T)], sizeof(T));
          ASSERT_EQ(out, combined<T>(combine, b[i], a[i])) << name_of(combine) << " number " << i << " of " << count;
        }
        EXPECT_EQ(target[size + 1], 0xa5);
        EXPECT_EQ(target[shift == 0 ? size : 0], 0xa5);
      }
  }
}

TYPED_TEST(Combinations, TheIdentityChangesNothing) {
  using T = TypeParam;
  constexpr ElementType type = element_type_of<T>;
  std::mt19937_64 random(4);
  for (const Combine combine : combines) {
    if (!detail::can_combine(combine, type)) continue;
    constexpr int count = 37;
    const std::unique_ptr<T[]> values(new T[count]), target(new T[count]);
    for (int i = 0; i < count; ++i) values[i] = random_value<T>(random);
    detail::write_identity(combine, type, count, target.get());
    detail::combine_row(combine, type, count, values.get(), target.get());
    for (int i = 0; i < count; ++i) ASSERT_EQ(target[i], values[i]) << name_of(combine);
  }
}

/// Of a device that runs no host functions.
class FillingStream final : public EagerStream {
 public:
  FillingStream() : EagerStream(Device::host(), 0) {}
  void run(std::unique_ptr<Kernel>) override { throw Error(ErrorCode::unsupported, "no kernels"); }
};

TYPED_TEST(Combinations, TheIdentityFillsARegionWithoutKernels) {
  using T = TypeParam;
  constexpr ElementType type = element_type_of<T>;
  constexpr int size = sizeof(T);
  FillingStream stream;
  for (const Combine combine : combines) {
    if (!detail::can_combine(combine, type)) continue;
    unsigned char identity[size];
    detail::write_identity(combine, type, 1, identity);
    std::vector<unsigned char> cells(4 * 5 * size, 0xa5);
    const StridedView view{.data = cells.data(), .type = type, .extents = {4, 5}, .strides = {5, 1}};
    const Region region = Region::boxes({{{0, 1}, {2, 3}}, {{3, 0}, {4, 5}}});
    detail::fill_identity(combine, view, region, stream);
    for (int i = 0; i < 20; ++i) {
      const bool is_filled = region.contains(Indices{i / 5, i % 5});
      for (int byte = 0; byte < size; ++byte)
        ASSERT_EQ(cells[i * size + byte], is_filled ? identity[byte] : 0xa5) << name_of(combine) << ", cell " << i;
    }
  }
}

TEST(Combination, OnlyComplexNumbersHaveNoOrder) {
  for (const Combine combine : combines) {
    const bool ordered = combine == Combine::minimum || combine == Combine::maximum;
    for (const ElementType type : {ElementType::c64, ElementType::c128, ElementType::c256})
      EXPECT_EQ(detail::can_combine(combine, type), !ordered);
    for (const ElementType type : {ElementType::bool8, ElementType::u8, ElementType::bf16, ElementType::f128})
      EXPECT_TRUE(detail::can_combine(combine, type));
  }
}

TEST(Combination, HalvesAreNumbers) {
  const float16 two{0x4000}, three{0x4200}, nan{0xfe01};
  float16 target = two;
  detail::combine_row(Combine::product, ElementType::f16, 1, &three, &target);
  EXPECT_EQ(target.bits, 0x4600);
  detail::combine_row(Combine::minimum, ElementType::f16, 1, &nan, &target);
  EXPECT_EQ(target.bits, 0x7e00);
  bfloat16 lowest;
  detail::write_identity(Combine::maximum, ElementType::bf16, 1, &lowest);
  EXPECT_EQ(lowest.bits, 0xff80);
}

/// x87 numbers have padding, which belongs to nobody: a combination leaves it, an identity makes it zeros.
TEST(Combination, PaddingOfLongDoublesIsLeftAlone) {
  if (std::numeric_limits<long double>::digits != 64) GTEST_SKIP() << "long double has no padding here";
  for (const Combine combine : combines)
    for (const ElementType type : {ElementType::f128, ElementType::c256}) {
      if (!detail::can_combine(combine, type)) continue;
      const long double one = 1;
      unsigned char source[32] = {}, target[32];
      std::memset(target, 0xa5, sizeof target);
      for (const int part : {0, 16}) {
        std::memcpy(source + part, &one, 10);
        std::memcpy(target + part, &one, 10);
      }
      detail::combine_row(combine, type, 1, source, target);
      for (int part = 0; part < size_bytes(type); part += 16)
        for (int i = 10; i < 16; ++i) ASSERT_EQ(target[part + i], 0xa5) << name_of(combine);
      detail::write_identity(combine, type, 1, target);
      for (int part = 0; part < size_bytes(type); part += 16)
        for (int i = 10; i < 16; ++i) ASSERT_EQ(target[part + i], 0) << name_of(combine);
    }
}

}  // namespace
}  // namespace tranship
