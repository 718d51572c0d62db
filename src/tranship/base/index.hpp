// Detail: Index and Indices: 64-bit indices and vectors of at most 8 of them, which never use the heap.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <tranship/base/result.hpp>

namespace tranship {

using Index = std::int64_t;
/// A rank of a world. A plain int as in MPI; -1 means no rank.
using Rank = int;

inline constexpr int dims_max = 8;

/// A small vector of indices, such as extents, coordinates or strides. One entry per dimension, dimension 0 first.
class Indices {
 public:
  Indices() = default;
  /// Returns `count` entries, each equal to `value`.
  static Indices filled(int count, Index value);
  Indices(std::initializer_list<Index> values);
  explicit Indices(std::span<const Index> values);

  int size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Index& operator[](int i) noexcept { return values_[i]; }
  Index operator[](int i) const noexcept { return values_[i]; }
  Index* begin() noexcept { return values_.data(); }
  Index* end() noexcept { return values_.data() + size_; }
  const Index* begin() const noexcept { return values_.data(); }
  const Index* end() const noexcept { return values_.data() + size_; }
  void push_back(Index value);

  friend bool operator==(const Indices& a, const Indices& b) noexcept {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  std::array<Index, dims_max> values_{};
  int size_ = 0;
};

/// Returns the product of extents. Throws `overflow` when it does not fit in 63 bits, and `invalid_use` for a negative
/// extent.
Index checked_product(const Indices& extents);
/// Return a * b and a + b; throw `overflow`.
Index checked_multiply(Index a, Index b);
Index checked_add(Index a, Index b);

/// Returns "8192, 8192": the extents as messages print them, without brackets.
std::string to_string(const Indices& values);

/// Floor division and its remainder (0 <= remainder < b), for b > 0 and any a.
constexpr Index floor_divide(Index a, Index b) noexcept {
  return a / b - (a % b != 0 && a < 0);
}
constexpr Index floor_modulo(Index a, Index b) noexcept {
  return a - floor_divide(a, b) * b;
}
constexpr Index ceil_divide(Index a, Index b) noexcept {
  return -floor_divide(-a, b);
}

/// Calls `f(const Indices&)` for all coordinates of a box of `extents`, with the last dimension fastest.
template <class F>
void for_each_coordinate(const Indices& extents, F&& f) {
  for (Index e : extents)
    if (e <= 0) return;
  Indices at = Indices::filled(extents.size(), 0);
  for (;;) {
    f(static_cast<const Indices&>(at));
    int d = extents.size() - 1;
    for (; d >= 0 && ++at[d] == extents[d]; --d) at[d] = 0;
    if (d < 0) return;
  }
}

}  // namespace tranship
