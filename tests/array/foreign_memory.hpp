// Memory that tranship has not laid out: padded, in Fortran order, backward, spaced, with poison around and between the
// elements, so that a test sees every element that was missed and every byte that was touched besides.
#pragma once

#include <string>
#include <vector>

#include <tranship/base/strided_view.hpp>

namespace tranship::test {

enum class Lie { padded, fortran, backward, spaced };
inline constexpr Lie all_lies[] = {Lie::padded, Lie::fortran, Lie::backward, Lie::spaced};

inline std::string name_of(Lie lie) {
  switch (lie) {
    case Lie::padded:
      return "padded";
    case Lie::fortran:
      return "fortran";
    case Lie::backward:
      return "backward";
    case Lie::spaced:
      return "spaced";
  }
  return "?";
}

class ForeignMemory {
 public:
  static constexpr double poison = -7e77;

  ForeignMemory(const Indices& extents, Lie lie) {
    view_ = {.data = nullptr, .type = ElementType::f64, .extents = extents, .strides = extents};
    const int dims = extents.size();
    Index stride = lie == Lie::spaced ? 3 : 1;
    for (int k = 0; k < dims; ++k) {
      const int d = lie == Lie::fortran ? k : dims - 1 - k;
      view_.strides[d] = lie == Lie::backward ? -stride : stride;
      stride *= extents[d] + (lie == Lie::padded ? 2 : 0);
    }
    constexpr Index margin = 5;
    memory_.assign(std::size_t(stride + 2 * margin), poison);
    Index first = margin;
    if (lie == Lie::backward)
      for (int d = 0; d < dims; ++d)
        if (extents[d] > 0) first -= (extents[d] - 1) * view_.strides[d];
    view_.data = checked_product(extents) > 0 ? memory_.data() + first : nullptr;
  }
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;

  const StridedView& view() const { return view_; }

  /// Poisons the elements; what is not poison then was never an element and has been written.
  Index count_touched() {
    for_each_coordinate(view_.extents, [&](const Indices& local) {
      Index offset = 0;
      for (int d = 0; d < local.size(); ++d) offset += local[d] * view_.strides[d];
      static_cast<double*>(view_.data)[offset] = poison;
    });
    Index touched = 0;
    for (const double element : memory_) touched += element != poison;
    return touched;
  }

 private:
  std::vector<double> memory_;
  StridedView view_;
};

}  // namespace tranship::test
