#include "tranship/memory/combination.hpp"

#include <algorithm>
#include <array>
#include <complex>

#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship::detail {
namespace {

/// The kernels combine complex numbers part by part, which is wrong for products.
template <class Number>
void multiply_complex(Index count, const void* source, void* target) {
  using Value = std::complex<typename Number::Value>;
  constexpr Index width = Number::width;
  const auto read = [](const unsigned char* from) { return Value(Number::read(from), Number::read(from + width)); };
  for (Index i = 0; i < count; ++i) {
    auto* to = static_cast<unsigned char*>(target) + 2 * width * i;
    const Value product = read(to) * read(static_cast<const unsigned char*>(source) + 2 * width * i);
    Number::write(product.real(), to);
    Number::write(product.imag(), to + width);
  }
}

}  // namespace

void write_identity(Combine combine, ElementType type, Index count, void* target) {
  TRANSHIP_ASSERT(can_combine(combine, type));
  const ElementType part = part_of(type);
  const int width = size_bytes(part);
  const CopyBlock row = row_of(count, size_bytes(type));
  fill_on_host(row, width, identity_of(combine, part), target);
  if (is_complex(type)) fill_on_host(row, width, nullptr, static_cast<std::byte*>(target) + width);
}

void fill_identity(Combine combine, const StridedView& view, const Region& region, Stream& stream) {
  const int size = size_bytes(view.type), width = std::min(size, 16);
  alignas(16) std::byte element[32];
  write_identity(combine, view.type, 1, element);
  for (const Box& box : region.boxes()) {
    CopyBlock block;
    block.dims = box.dims();
    Index offset = 0;
    for (int d = 0; d < box.dims(); ++d) {
      block.extents[d] = box[d].length();
      block.target_strides[d] = view.strides[d] * size;
      offset += box.lower[d] * view.strides[d] * size;
    }
    // A wider element is written in parts of the widest store that streams have.
    for (int part = 0; part < size; part += width)
      stream.fill(block, width, element + part, static_cast<std::byte*>(view.data) + offset + part);
  }
}

void combine_row(Combine combine, ElementType type, Index count, const void* source, void* target) {
  TRANSHIP_ASSERT(can_combine(combine, type));
  const ElementType part = part_of(type);
  if (is_complex(type) && combine == Combine::product) {
    if (part == ElementType::f32) return multiply_complex<Real<float, unsigned>>(count, source, target);
    if (part == ElementType::f64) return multiply_complex<Real<double, unsigned long long>>(count, source, target);
    return multiply_complex<Extended>(count, source, target);
  }
  const int width = size_bytes(part);
  const Index numbers = count * (size_bytes(type) / width);
  move_on_host(row_of(numbers, width), map_of(combine), arithmetic_of(part), width, copy_method(numbers * width),
               source, target);
}

void check_combination(Combine combine, ElementType type) {
  if (combine > Combine::maximum)
    throw_error(ErrorCode::invalid_use, "there is no combination {} of elements {}", int(combine), name_of(type));
  if (!can_combine(combine, type))
    throw_error(ErrorCode::invalid_use, "elements {} have no {}", name_of(type), name_of(combine));
}

void combine_block(Combine combine, ElementType type, const CopyBlock& block, const void* source, void* target) {
  check_combination(combine, type);
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] <= 0) return;
  const int size = size_bytes(type), last = block.dims - 1;
  const bool has_rows = last >= 0 && block.source_strides[last] == size && block.target_strides[last] == size;
  const int outer = has_rows ? last : block.dims;
  const auto* from = static_cast<const std::byte*>(source);
  auto* to = static_cast<std::byte*>(target);
  long long at[block_dims_max] = {};
  for (;;) {
    combine_row(combine, type, has_rows ? block.extents[last] : 1, from, to);
    int d = outer - 1;
    for (; d >= 0 && ++at[d] == block.extents[d]; --d) {
      from -= (block.extents[d] - 1) * block.source_strides[d];
      to -= (block.extents[d] - 1) * block.target_strides[d];
      at[d] = 0;
    }
    if (d < 0) return;
    from += block.source_strides[d];
    to += block.target_strides[d];
  }
}

}  // namespace tranship::detail
