// Private: LayoutError, an error about one number of a layout, so that a parser can point at that number in its text.
#pragma once

#include <cstddef>
#include <utility>

#include <tranship/base/fail.hpp>

namespace tranship {

/// The number or the list of numbers that is wrong.
enum class LayoutValue : std::uint8_t {
  extents,  ///< of the array
  parts,    ///< of the grid, one per dimension
  replicas,
  axes,  ///< the order of the grid
  ranks,
  bounds,
  block_size,
  minimum,
  modulo,
  order,  ///< of the memory
  strides,
  spacing,
  align,
};

/// `index` is the position in the list, or 0.
class LayoutError : public Error {
 public:
  LayoutError(Error error, LayoutValue value, std::size_t index)
      : Error(std::move(error)), value_(value), index_(index) {}

  LayoutValue value() const noexcept { return value_; }
  std::size_t index() const noexcept { return index_; }

 private:
  LayoutValue value_;
  std::size_t index_;
};

template <class I, class... Args>
[[noreturn]] void fail_value(LayoutValue value, I index, fmt::format_string<Args...> text, Args&&... args) {
  throw LayoutError(make_error(ErrorCode::invalid_use, text, std::forward<Args>(args)...), value,
                    static_cast<std::size_t>(index));
}

/// Returns the position of the first axis that is not below `count` or is repeated, or the last position if there is
/// none.
template <class List>
int wrong_axis(const List& axes, int count) {
  std::uint64_t seen = 0;
  int k = 0;
  for (const auto axis : axes) {
    if (axis < 0 || axis >= count || (seen >> axis & 1)) return k;
    seen |= std::uint64_t(1) << axis;
    ++k;
  }
  return k - 1;
}

}  // namespace tranship
