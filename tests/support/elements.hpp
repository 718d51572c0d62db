// Single elements of views, as bytes: what tests of exchanges write and compare, compiled once and optimized.
#pragma once

#include <cstddef>
#include <span>

#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/strided_view.hpp>

namespace tranship::test {

/// The bits of one element: real and imaginary part one after the other.
struct ElementBytes {
  unsigned char bytes[32] = {};
};

/// A number in an element type; the imaginary part is twice the real one. Linear in `value` for the linear types.
/// The plan interpreter's largest and smallest numbers stand for those of the type.
ElementBytes element_of(ElementType type, Index value);

void write_element(const StridedView& view, const Indices& local, const ElementBytes& element);
bool has_element(const StridedView& view, const Indices& local, const ElementBytes& element);

/// How many of `bytes` are `byte`.
Index count_bytes(std::span<const std::byte> bytes, int byte);

}  // namespace tranship::test
