// Contiguous rows of elements that are combined with the target's elements or negated.
#include <tranship/kernels/host/host_loops.hpp>
#include <tranship/kernels/strided_copy.hpp>

namespace tranship::loops {
namespace {

template <class Element>
void move_rows_16(const Rows& rows, const void* source, void* target) {
  for_each_row(rows, source, target, [&](const Byte* from, Byte* to) {
    detail::move_contiguous_row<Element>(rows.row_bytes / Element::width, from, to);
  });
}

#if defined(__x86_64__)
/// f16 has conversion instructions; a combination of two of them is exact enough in f32 (half.hpp).
using F16 = detail::Half<float_of_f16, f16_of_float>;
template <class Element>
constexpr ElementMap f16_move = ElementMap::copy;
template <ElementMap move>
constexpr ElementMap f16_move<detail::CombineElement<F16, move>> = move;

template <ElementMap move>
[[gnu::target("avx2,f16c"), gnu::always_inline]] inline __m256 combined(__m256 a, __m256 b) {
  if constexpr (move == ElementMap::accumulate) return _mm256_add_ps(a, b);
  if constexpr (move == ElementMap::accumulate_negated) return _mm256_sub_ps(a, b);
  if constexpr (move == ElementMap::multiply) return _mm256_mul_ps(a, b);
  // If both are equal or one is NaN, these instructions return their second operand.
  const __m256 chosen = move == ElementMap::minimum ? _mm256_min_ps(b, a) : _mm256_max_ps(b, a);
  return _mm256_blendv_ps(chosen, b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}

template <class Element>
[[gnu::target("avx2,f16c")]] void combine_f16_row(long long count, const Byte* source, Byte* target) {
  const __m128i nan = _mm_set1_epi16(0x7e00);
  long long i = 0;
  for (; i + 8 <= count; i += 8) {
    const auto* from = reinterpret_cast<const __m128i*>(source + 2 * i);
    auto* to = reinterpret_cast<__m128i*>(target + 2 * i);
    const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(to)), b = _mm256_cvtph_ps(_mm_loadu_si128(from));
    const __m256 value = combined<f16_move<Element>>(a, b);
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m128i is_nan_16 = _mm_packs_epi32(_mm256_castsi256_si128(is_nan), _mm256_extracti128_si256(is_nan, 1));
    _mm_storeu_si128(to, _mm_blendv_epi8(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT), nan, is_nan_16));
  }
  for (; i < count; ++i) Element::apply(source + 2 * i, target + 2 * i);
}

template <class Element>
[[gnu::target("avx2,f16c"), gnu::flatten]] void move_rows_32(const Rows& rows, const void* source, void* target) {
  for_each_row(rows, source, target, [&](const Byte* from, Byte* to) {
    const long long count = rows.row_bytes / Element::width;
    if constexpr (f16_move<Element> == ElementMap::copy)
      detail::move_contiguous_row<Element>(count, from, to);
    else
      combine_f16_row<Element>(count, from, to);
  });
}
#endif

}  // namespace

RowCopy row_move(ElementMap move, Arithmetic arithmetic, int width, [[maybe_unused]] Simd simd) {
  RowCopy out = nullptr;
  detail::with_element(move, arithmetic, width, [&](auto element) {
    using Element = decltype(element);
    if constexpr (!Element::is_copy) {
#if defined(__x86_64__)
      if (simd == Simd::bytes32) {
        out = &move_rows_32<Element>;
        return;
      }
#endif
      out = &move_rows_16<Element>;
    }
  });
  return out;
}

}  // namespace tranship::loops
