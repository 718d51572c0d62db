// Private: Conformance checks of calls, in the library `vsip_checked` (TRANSHIP_VSIP_CHECKS); the other library
// compiles them to nothing. Invariant: a check comes before any effect, and a call whose check fails returns 0 or NULL.
#pragma once

#include <tranship/face/vsip/objects.hpp>

namespace tranship::vsip {

#if defined(TRANSHIP_VSIP_CHECKS)
inline constexpr bool checking = true;
#else
inline constexpr bool checking = false;
#endif

/// Reports a wrong call to the handler, or prints the message and aborts.
void report(const char* call, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Objects that live, by address. Only the checked library notes them.
void note_alive(const void* object);
void note_destroyed(const void* object);
bool is_alive(const void* object);

template <class O>
O* noted(O* object) {
  if constexpr (checking)
    if (object) note_alive(object);
  return object;
}

/// Whether `object` may be used: not NULL, and alive.
inline bool usable_object(const char* call, const char* what, const void* object) {
  if constexpr (checking) {
    if (!object) {
      report(call, "the %s is NULL", what);
      return false;
    }
    if (!is_alive(object)) {
      report(call, "the %s at %p is not alive: it was destroyed, or it is no object of this library", what, object);
      return false;
    }
  }
  return true;
}

/// Whether elements from `offset` on with these dimensions lie inside of `length` elements. Sets the first and the last
/// element (exact unless they do not fit in 64 bits).
bool lies_inside(vsip_offset offset, const Dimension* dimensions, int dims, vsip_length length, long long* first,
                 long long* last);

template <class V>
bool inside_block(const char* call, const V& view) {
  if constexpr (checking) {
    long long first = 0, last = 0;
    if (!lies_inside(view.offset, view.dimensions.data(), V::dims, view.block->length, &first, &last)) {
      report(call, "a view shows elements %lld to %lld of a block of %zu elements", first, last, view.block->length);
      return false;
    }
  }
  return true;
}

/// The view exists, and so does its block.
template <class V>
bool living_view(const char* call, const V* view) {
  if constexpr (checking) {
    if (!usable_object(call, "view", view)) return false;
    if (!usable_object(call, "block of the view", view->block)) return false;
  }
  return true;
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

/// The elements of the view may be used.
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

/// All views may be used and have the lengths of the first.
template <class V, class... W>
bool conform(const char* call, const V* first, const W*... others) {
  if constexpr (checking)
    return usable_view(call, first) && (usable_view(call, others) && ...) &&
           (same_lengths(call, *first, *others) && ...);
  return true;
}

}  // namespace tranship::vsip
