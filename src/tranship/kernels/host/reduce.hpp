// Private: combining arrays element by element, as collective operations and programs do.
#pragma once

#include <cstddef>

#include <tranship/base/element_type.hpp>
#include <tranship/base/reduction.hpp>

namespace tranship::detail {

/// Complex numbers have sums only; only integers and bools have bits.
bool can_reduce(Reduction reduction, ElementType type) noexcept;

/// Each element of `to` becomes itself combined with that of `from`. Which one comes first matters for no reduction.
void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, Reduction reduction, ElementType type);

/// Arrays of `bytes` each, whole elements. A target may be one of the sources; apart from that, targets overlap
/// nothing.
struct CombinedArrays {
  const std::byte* const* sources = nullptr;
  std::size_t source_count = 0;
  std::byte* const* targets = nullptr;
  std::size_t target_count = 0;
  std::size_t bytes = 0;
};

/// Combines any number of arrays, in their order, to the bit as reduce_into does one after the other, and stores the
/// result to all targets. At least two sources. Those of numbers that the processor computes with in vectors are read
/// once.
class Combiner {
 public:
  Combiner() = default;
  Combiner(Reduction reduction, ElementType type) noexcept;

  void operator()(const CombinedArrays& arrays) const {
    if (vectors_)
      vectors_(arrays);
    else
      one_by_one(arrays);
  }

 private:
  void one_by_one(const CombinedArrays& arrays) const;

  void (*vectors_)(const CombinedArrays&) = nullptr;
  Reduction reduction_ = Reduction::sum;
  ElementType type_{};
};

}  // namespace tranship::detail
