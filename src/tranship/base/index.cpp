#include "tranship/base/index.hpp"

#include <tranship/base/fail.hpp>

namespace tranship {

Indices Indices::filled(int count, Index value) {
  Indices out;
  for (int i = 0; i < count; ++i) out.push_back(value);
  return out;
}

Indices::Indices(std::initializer_list<Index> values) {
  for (Index v : values) push_back(v);
}

Indices::Indices(std::span<const Index> values) {
  for (Index v : values) push_back(v);
}

void Indices::push_back(Index value) {
  if (size_ == dims_max) throw_error(ErrorCode::unsupported, "an array has at most {} dimensions, got more", dims_max);
  values_[size_++] = value;
}

Index checked_multiply(Index a, Index b) {
  Index out;
  if (__builtin_mul_overflow(a, b, &out)) throw_error(ErrorCode::overflow, "{} x {} does not fit in 63 bits", a, b);
  return out;
}

Index checked_add(Index a, Index b) {
  Index out;
  if (__builtin_add_overflow(a, b, &out)) throw_error(ErrorCode::overflow, "{} + {} does not fit in 63 bits", a, b);
  return out;
}

Index checked_product(const Indices& extents) {
  // An array with an empty dimension is empty, whatever its other extents: look for one before multiplying.
  bool empty = false;
  for (int d = 0; d < extents.size(); ++d) {
    if (extents[d] < 0) throw_error(ErrorCode::invalid_use, "extent {} of dimension {} is negative", extents[d], d);
    empty |= extents[d] == 0;
  }
  if (empty) return 0;
  Index out = 1;
  for (Index e : extents)
    if (__builtin_mul_overflow(out, e, &out))
      throw_error(ErrorCode::overflow, "the product of extents [{}] does not fit in 63 bits", to_string(extents));
  return out;
}

std::string to_string(const Indices& values) {
  return fmt::format("{}", join_text(values, ", "));
}

}  // namespace tranship
