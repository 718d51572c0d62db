// Private: Conformance checks of calls, in the library `vsip_checked` (TRANSHIP_VSIP_CHECKS); the other library
// compiles them to nothing. Invariant: a check comes before any effect, and a call whose check fails returns 0 or NULL.
#pragma once

#include <bit>

#include <tranship/base/strided_view.hpp>
#include <tranship/face/vsip/objects.hpp>

namespace tranship::vsip {

#if defined(TRANSHIP_VSIP_CHECKS)
inline constexpr bool checking = true;
#else
inline constexpr bool checking = false;
#endif

/// Reports a wrong call to the handler, or prints the message and aborts.
void report(const char* call, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// The living objects, by address; only the checked library keeps them. note_alive returns false if it has no memory.
bool note_alive(const void* object);
void note_destroyed(const void* object);
bool is_alive(const void* object);

/// Registers the object. Destroys it and returns null if there is no memory for that.
template <class O>
O* noted(O* object) {
  if constexpr (checking)
    if (object && !note_alive(object)) {
      delete object;
      return nullptr;
    }
  return object;
}

/// Returns true if the caller has passed an address.
inline bool given(const char* call, const char* what, const void* address) {
  if constexpr (checking)
    if (!address) {
      report(call, "the %s is NULL", what);
      return false;
    }
  return true;
}
inline bool given_parts(const char* call, const void* real, const void* imaginary) {
  return given(call, "place for the address of real parts", real) &&
         given(call, "place for the address of imaginary parts", imaginary);
}

/// The values of an enumeration: from `first` to `last`, `step` apart.
struct Values {
  const char* what;
  int first, last, step = 1;
};
template <class E>
inline constexpr Values values_of{};
template <>
inline constexpr Values values_of<vsip_major>{"major direction", VSIP_ROW, VSIP_COL};
template <>
inline constexpr Values values_of<vsip_tmajor>{"major direction", VSIP_TRAILING, VSIP_LEADING};
template <>
inline constexpr Values values_of<vsip_tmslice>{"slice", VSIP_TMYX, VSIP_TMZY};
template <>
inline constexpr Values values_of<vsip_tvslice>{"slice", VSIP_TVX, VSIP_TVZ};
template <>
inline constexpr Values values_of<vsip_ttrans>{"transposition", VSIP_TTRANS_NOP, VSIP_TTRANS_YXZX};
template <>
inline constexpr Values values_of<vsip_fft_dir>{"direction", VSIP_FFT_FWD, VSIP_FFT_INV, 2};
template <>
inline constexpr Values values_of<vsip_alg_hint>{"hint", VSIP_ALG_SPACE, VSIP_ALG_NOISE};

bool is_one_of(const char* call, int value, const Values& values);

/// Returns true if the enumeration has this value.
template <class E>
bool valid(const char* call, E value) {
  if constexpr (checking) return is_one_of(call, int(value), values_of<E>);
  return true;
}

/// Returns true if `object` may be used: it is not NULL, and alive.
inline bool usable_object(const char* call, const char* what, const void* object) {
  if constexpr (checking) {
    if (!given(call, what, object)) return false;
    if (!is_alive(object)) {
      report(call, "the %s at %p is not alive: it was destroyed, or it is no object of this library", what, object);
      return false;
    }
  }
  return true;
}

/// Returns true if the object is alive and the caller has passed a structure of attributes.
inline bool has_attributes(const char* call, const char* what, const void* object, const void* attributes) {
  return usable_object(call, what, object) && given(call, "structure of attributes", attributes);
}

/// Returns true if the elements from `offset` on lie inside `length` elements; otherwise reports the call.
bool inside_block(const char* call, vsip_offset offset, const Dimension* dimensions, int dims, vsip_length length);

template <class V>
bool inside_block(const char* call, const V& view) {
  if constexpr (checking) return inside_block(call, view.offset, view.dimensions.data(), V::dims, view.block->length);
  return true;
}

/// Returns true if the view exists and its block exists.
template <class V>
bool living_view(const char* call, const V* view) {
  if constexpr (checking) {
    if (!usable_object(call, "view", view)) return false;
    if (!usable_object(call, "block of the view", view->block)) return false;
  }
  return true;
}

/// Returns true if the view exists and lies inside its block, so every part of it does.
template <class V>
bool divisible_view(const char* call, const V* view) {
  return living_view(call, view) && inside_block(call, *view);
}

template <class B>
bool admitted(const char* call, const B& block) {
  if constexpr (checking) {
    bool is = block.admitted;
    if constexpr (!B::complex)
      if (block.kind == BlockKind::derived) is = block.data != nullptr && block.admitted;
    if (!is) {
      report(call, "the user block of %zu elements is released; admit it first", block.length);
      return false;
    }
  }
  return true;
}

/// Returns true if the elements of the view may be used.
template <class V>
bool usable_view(const char* call, const V* view) {
  return living_view(call, view) && admitted(call, *view->block) && inside_block(call, *view);
}

template <class V, class W>
bool same_lengths(const char* call, const V& a, const W& b) {
  if constexpr (checking) {
    static_assert(V::dims == W::dims);
    for (int d = 0; d < V::dims; ++d)
      if (a.dimensions[d].length != b.dimensions[d].length) {
        report(call, "lengths differ in dimension %d: %zu and %zu", d, a.dimensions[d].length, b.dimensions[d].length);
        return false;
      }
  }
  return true;
}

inline bool same_length(const char* call, const char* what, vsip_length a, vsip_length b) {
  if constexpr (checking)
    if (a != b) {
      report(call, "%s differ: %zu and %zu", what, a, b);
      return false;
    }
  return true;
}

/// Returns true if no dimension of a new block or view is empty.
template <std::size_t N>
bool has_elements(const char* call, const std::array<vsip_length, N>& lengths) {
  if constexpr (checking)
    for (std::size_t d = 0; d < N; ++d)
      if (lengths[d] == 0) {
        report(call, "the length of dimension %zu is 0, and not 1 or more", d);
        return false;
      }
  return true;
}

inline bool index_below(const char* call, vsip_index index, vsip_length length) {
  if constexpr (checking)
    if (index >= length) {
      report(call, "index %zu is outside of a length of %zu", index, length);
      return false;
    }
  return true;
}

inline bool slice_inside(const char* call, vsip_index first, vsip_length count, vsip_length length) {
  if constexpr (checking)
    if (first > length || count > length - first) {
      report(call, "%zu elements from %zu on are outside of a length of %zu", count, first, length);
      return false;
    }
  return true;
}

/// Returns true if all views may be used and have the lengths of the first.
template <class V, class... W>
bool conform(const char* call, const V* first, const W*... others) {
  if constexpr (checking)
    return usable_view(call, first) && (usable_view(call, others) && ...) &&
           (same_lengths(call, *first, *others) && ...);
  return true;
}

/// Returns an element type of this width: checks of memory need only the width.
constexpr ElementType type_of_width(std::size_t bytes) {
  return bytes == 1   ? ElementType::u8
         : bytes == 2 ? ElementType::u16
         : bytes == 4 ? ElementType::u32
         : bytes == 8 ? ElementType::u64
                      : ElementType::c128;
}

template <class T, std::size_t N>
StridedView footprint(const T* data, const std::array<std::ptrdiff_t, N>& strides,
                      const std::array<Dimension, N>& like) {
  // An index of a tensor is three numbers: one more dimension.
  constexpr std::size_t numbers = sizeof(T) <= 16 ? 1 : sizeof(T) / alignof(T);
  constexpr std::size_t width = sizeof(T) / numbers;
  static_assert(std::has_single_bit(width) && width <= 16);
  StridedView out{.data = const_cast<T*>(data), .type = type_of_width(width)};
  for (std::size_t d = 0; d < N; ++d) {
    out.extents.push_back(Index(like[d].length));
    out.strides.push_back(strides[d] * Index(numbers));
  }
  if (numbers > 1) {
    out.extents.push_back(Index(numbers));
    out.strides.push_back(1);
  }
  return out;
}

/// Returns the memory of a real view, or of each part of a complex one.
template <class V>
auto footprints(const V& view) {
  const auto place = place_of(view);
  if constexpr (V::Block::complex)
    return std::array{footprint(place.re, place.strides, view.dimensions),
                      footprint(place.im, place.strides, view.dimensions)};
  else
    return std::array{footprint(place.data, place.strides, view.dimensions)};
}

/// The memory that a result may share with an argument.
enum class Sharing : unsigned char {
  nothing,
  same_scalars,   ///< a part of an element may share only with the same part of the same element
  same_elements,  ///< an element may share only with the same element
};

/// Checks one part of the result against one of the argument; `same_part`: both are real parts or both imaginary parts.
bool may_share(const char* call, Sharing sharing, bool same_part, const StridedView& result,
               const StridedView& argument);

/// Returns true if the result shares memory with the arguments only as `sharing` allows.
template <class R, class... A>
bool apart(const char* call, Sharing sharing, const R& result, const A&... arguments) {
  if constexpr (checking) {
    const auto from_one = [&](const auto& read) {
      const auto written = footprints(result);
      for (std::size_t i = 0; i < written.size(); ++i)
        for (std::size_t j = 0; j < read.size(); ++j)
          if (!may_share(call, sharing, i == j, written[i], read[j])) return false;
      return true;
    };
    return (from_one(footprints(arguments)) && ...);
  }
  return true;
}

/// Returns true if all views may be used and have the lengths of the first, and the result may be computed element by
/// element from the arguments.
template <class V, class... W>
bool conform_in_place(const char* call, const V* result, const W*... arguments) {
  return conform(call, result, arguments...) && apart(call, Sharing::same_elements, *result, *arguments...);
}

}  // namespace tranship::vsip
