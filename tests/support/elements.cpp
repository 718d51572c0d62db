#include "support/elements.hpp"

#include <algorithm>
#include <cstring>

#include <tranship/kernels/half.hpp>
#include <tranship/memory/combination.hpp>

#include "support/plan_interpreter.hpp"

namespace tranship::test {
namespace {

template <class T>
void store_as(Index value, void* to) {
  const T out = static_cast<T>(value);
  std::memcpy(to, &out, sizeof(T) == 16 ? 10 : sizeof(T));  // a long double has 10 bytes and padding
}

/// The bits of a number of a part type. Linear in `value` for the linear types.
void store_part(ElementType part, Index value, void* to) {
  switch (part) {
    case ElementType::f16:
      return store_as<unsigned short>(f16_of_float(float(value)), to);
    case ElementType::bf16:
      return store_as<unsigned short>(bf16_of_float(float(value)), to);
    case ElementType::f32:
      return store_as<float>(value, to);
    case ElementType::f64:
      return store_as<double>(value, to);
    case ElementType::f128:
      return store_as<long double>(value, to);
    default:
      std::memcpy(to, &value, size_bytes(part));  // integers wrap; others are only copied
  }
}

struct Place2 {
  std::byte* real;
  std::byte* imaginary;
};

Place2 place_in(const StridedView& view, const Indices& local) {
  Index offset = 0;
  for (int d = 0; d < local.size(); ++d) offset += local[d] * view.strides[d];
  const int part = size_bytes(part_of(view.type));
  if (view.imaginary)
    return {static_cast<std::byte*>(view.data) + offset * part,
            static_cast<std::byte*>(view.imaginary) + offset * part};
  std::byte* at = static_cast<std::byte*>(view.data) + offset * size_bytes(view.type);
  return {at, at + part};
}

}  // namespace

ElementBytes element_of(ElementType type, Index value) {
  ElementBytes out;
  for (const Combine combine : {Combine::minimum, Combine::maximum})
    if (value == identity(combine) && !is_complex(type)) {
      const int bytes = type == ElementType::f128 ? 10 : size_bytes(type);
      std::memcpy(out.bytes, detail::identity_of(combine, type), bytes);
      return out;
    }
  const ElementType part = part_of(type);
  store_part(part, value, out.bytes);
  if (is_complex(type)) store_part(part, 2 * value, out.bytes + size_bytes(part));
  return out;
}

void write_element(const StridedView& view, const Indices& local, const ElementBytes& e) {
  const int part = size_bytes(part_of(view.type));
  const Place2 at = place_in(view, local);
  std::memcpy(at.real, e.bytes, part);
  if (is_complex(view.type)) std::memcpy(at.imaginary, e.bytes + part, part);
}

bool has_element(const StridedView& view, const Indices& local, const ElementBytes& e) {
  const int part = size_bytes(part_of(view.type));
  const Place2 at = place_in(view, local);
  return std::memcmp(at.real, e.bytes, part) == 0 &&
         (!is_complex(view.type) || std::memcmp(at.imaginary, e.bytes + part, part) == 0);
}

Index count_bytes(std::span<const std::byte> bytes, int byte) {
  return std::count(bytes.begin(), bytes.end(), std::byte(byte));
}

}  // namespace tranship::test
