// Detail: Element types: all of NumPy's number types, and bfloat16. Moving data needs only their sizes; the names
// matter where users and files meet the library.
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

/// Returns the size of one element in bytes: 1, 2, 4, 8 or 16 (32 for c256, which moves as two parts of 16).
int size_bytes(ElementType type) noexcept;
/// Returns the short name that layout texts use: "f64", "c128", "bool8".
std::string_view name_of(ElementType type) noexcept;
/// Returns NumPy's kind and size ("f8"), without a byte order. bf16, which NumPy lacks, is stored as "V2".
std::string_view numpy_kind(ElementType type) noexcept;
bool is_complex(ElementType type) noexcept;
/// Returns the type of the real or imaginary part, or the type itself when it is not complex.
ElementType part_of(ElementType type) noexcept;

/// Returns the type that a layout text calls `name`: "f64", or a name of NumPy ("f8", "<f8", "float64"). Where both
/// mean something, the name of this library wins: without a byte order, "i8", "u8" and "f16" count bits. Fails with
/// `bad_text` for an unknown name and with `unsupported` for a byte order that is not this machine's.
Result<ElementType> element_type_named(std::string_view name);
/// Returns the type of a NumPy kind and size ("f8"); fails with `bad_file`.
Result<ElementType> element_type_of_numpy(std::string_view kind);

/// The 2-byte brain float. It only carries the bits; programs that compute with it convert it themselves.
struct bfloat16 {
  std::uint16_t bits;
  friend bool operator==(bfloat16, bfloat16) = default;
};
/// IEEE half precision; it, too, only carries the bits.
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
