#include "tranship/kernels/host/element_moves.hpp"

#include <array>

#include <tranship/base/fail.hpp>

namespace tranship::detail {
namespace {

constexpr ElementType element_types[] = {
#define TRANSHIP_ELEMENT(name, size, numpy, part) ElementType::name,
#include <tranship/base/elements.def>
#undef TRANSHIP_ELEMENT
};
constexpr Combine combines[] = {Combine::sum, Combine::product, Combine::minimum, Combine::maximum};

struct alignas(16) Element {
  unsigned char bytes[16] = {};
};
using Identities = std::array<std::array<Element, std::size(combines)>, std::size(element_types)>;

Identities make_identities() {
  Identities out;
  for (const ElementType type : element_types)
    if (!is_complex(type))
      for (const Combine combine : combines)
        tranship::write_identity(map_of(combine), arithmetic_of(type), out[int(type)][int(combine)].bytes);
  return out;
}

const Identities& all_identities() {
  static const Identities identities = make_identities();
  return identities;
}

}  // namespace

Arithmetic arithmetic_of(ElementType type) {
  switch (type) {
    case ElementType::bool8:
      return Arithmetic::bool8;
    case ElementType::i8:
      return Arithmetic::i8;
    case ElementType::u8:
      return Arithmetic::u8;
    case ElementType::i16:
      return Arithmetic::i16;
    case ElementType::u16:
      return Arithmetic::u16;
    case ElementType::f16:
      return Arithmetic::f16;
    case ElementType::bf16:
      return Arithmetic::bf16;
    case ElementType::i32:
      return Arithmetic::i32;
    case ElementType::u32:
      return Arithmetic::u32;
    case ElementType::f32:
    case ElementType::c64:
      return Arithmetic::f32;
    case ElementType::i64:
      return Arithmetic::i64;
    case ElementType::u64:
      return Arithmetic::u64;
    case ElementType::f64:
    case ElementType::c128:
      return Arithmetic::f64;
    case ElementType::f128:
    case ElementType::c256:
      return Arithmetic::f128;
  }
  return Arithmetic::none;
}

bool can_combine(Combine combine, ElementType type) {
  return !is_complex(type) || combine == Combine::sum || combine == Combine::product;
}

const void* identity_of(Combine combine, ElementType type) {
  TRANSHIP_ASSERT(!is_complex(type));
  return all_identities()[int(type)][int(combine)].bytes;
}

std::span<const std::byte> identities() {
  return std::as_bytes(std::span(&all_identities(), 1));
}

}  // namespace tranship::detail
