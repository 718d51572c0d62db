// Moves elements that lie neither in rows nor in tiles.
#include <tranship/kernels/host/host_loops.hpp>
#include <tranship/kernels/strided_copy.hpp>

namespace tranship::loops {
namespace {

/// Walks the longer of the last two dimensions innermost, and four elements of the other one at a time.
template <class Element>
void move_elements(CopyBlock block, const Byte* source, Byte* target) {
  const int last = block.dims - 1;
  if (block.dims > 1 && block.extents[last] < block.extents[last - 1]) {
    const CopyBlock before = block;
    detail::set_dimension(block, last, before, last - 1);
    detail::set_dimension(block, last - 1, before, last);
  }
  const long long count = block.extents[last], count_outer = block.dims > 1 ? block.extents[last - 1] : 1;
  const long long ss = block.source_strides[last], ts = block.target_strides[last];
  const long long so = block.dims > 1 ? block.source_strides[last - 1] : 0;
  const long long to = block.dims > 1 ? block.target_strides[last - 1] : 0;
  block.dims = block.dims > 1 ? block.dims - 2 : 0;
  for_each_base(block, source, target, [&](const Byte* s, Byte* t) {
    long long outer = 0;
    for (; outer + 4 <= count_outer; outer += 4) {
      const Byte* from = s + outer * so;
      Byte* into = t + outer * to;
      for (long long i = 0; i < count; ++i) {
        Element::apply(from + i * ss, into + i * ts);
        Element::apply(from + i * ss + so, into + i * ts + to);
        Element::apply(from + i * ss + 2 * so, into + i * ts + 2 * to);
        Element::apply(from + i * ss + 3 * so, into + i * ts + 3 * to);
      }
    }
    for (; outer < count_outer; ++outer)
      for (long long i = 0; i < count; ++i) Element::apply(s + outer * so + i * ss, t + outer * to + i * ts);
  });
}

template <class Element>
constexpr bool takes_plain_loop = false;
template <class Number, ElementMap move>
constexpr bool takes_plain_loop<detail::CombineElement<Number, move>> = has_rows_only(move);

}  // namespace

void move_in_elements(CopyBlock block, ElementMap move, Arithmetic arithmetic, int width, const Byte* source,
                      Byte* target) {
  detail::with_element(move, arithmetic, width, [&](auto element) {
    using Element = decltype(element);
    if constexpr (!takes_plain_loop<Element>) move_elements<Element>(block, source, target);
  });
}

}  // namespace tranship::loops
