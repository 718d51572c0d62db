// Detail: Element types: every NumPy number type and bfloat16. Moving data needs only the size; names matter at the
// edges.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>

#include <tranship/base/result.hpp>

namespace tranship {

enum class ElementType : std::uint8_t {
#define TRANSHIP_ELEMENT(name, size, numpy, part) name,
#include <tranship/base/elements.def>
#undef TRANSHIP_ELEMENT
};

/// Size of one element in bytes: 1, 2, 4, 8 or 16 (32 for c256, which moves as two parts of 16).
int size_bytes(ElementType type) noexcept;
/// The short name that layout texts use: "f64", "c128", "bool8".
std::string_view name_of(ElementType type) noexcept;
/// NumPy's kind and size ("f8"), without a byte order. bf16, which NumPy lacks, is stored as "V2".
std::string_view numpy_kind(ElementType type) noexcept;
bool is_complex(ElementType type) noexcept;
/// The type of the real or imaginary part; the type itself when it is not complex.
ElementType part_of(ElementType type) noexcept;

/// The type that a layout text calls `name`: "f64", or as NumPy does "f8", "<f8" or "float64". Names of this library
/// come first: without a byte order, "i8", "u8" and "f16" count bits. Fails with `bad_text`, and with `unsupported` for
/// another byte order than this machine's.
Result<ElementType> element_type_named(std::string_view name);
/// The type of a NumPy kind and size ("f8"); fails with `bad_file`.
Result<ElementType> element_type_of_numpy(std::string_view kind);

/// The 2-byte brain float: a carrier of bits, with conversion left to those who compute with it.
struct bfloat16 {
  std::uint16_t bits;
  friend bool operator==(bfloat16, bfloat16) = default;
};
/// IEEE half precision, likewise a carrier of bits.
struct float16 {
  std::uint16_t bits;
  friend bool operator==(float16, float16) = default;
};

template <class T>
inline constexpr bool has_element_type = false;
template <class T>
inline constexpr ElementType element_type_of = ElementType::u8;

#define TRANSHIP_MAP(type, element)                    \
  template <>                                          \
  inline constexpr bool has_element_type<type> = true; \
  template <>                                          \
  inline constexpr ElementType element_type_of<type> = ElementType::element;
TRANSHIP_MAP(bool, bool8)
TRANSHIP_MAP(signed char, i8)
TRANSHIP_MAP(unsigned char, u8)
TRANSHIP_MAP(short, i16)
TRANSHIP_MAP(unsigned short, u16)
TRANSHIP_MAP(int, i32)
TRANSHIP_MAP(unsigned int, u32)
TRANSHIP_MAP(long, i64)
TRANSHIP_MAP(unsigned long, u64)
TRANSHIP_MAP(long long, i64)
TRANSHIP_MAP(unsigned long long, u64)
TRANSHIP_MAP(float16, f16)
TRANSHIP_MAP(bfloat16, bf16)
TRANSHIP_MAP(float, f32)
TRANSHIP_MAP(double, f64)
TRANSHIP_MAP(long double, f128)
TRANSHIP_MAP(std::complex<float>, c64)
TRANSHIP_MAP(std::complex<double>, c128)
TRANSHIP_MAP(std::complex<long double>, c256)
#undef TRANSHIP_MAP

}  // namespace tranship
