// Detail: MulticastSpan, what all members of a team have at one place of their heaps, as one array: a store goes to all
// of them, a load combines them. What NVSHMEM calls a multicast view, where every copy is loaded and stored by itself.
//
// Stores are stores: members see them once something says so, a fence and a signal or a barrier. No rank may write
// copies that are being combined.
#pragma once

#include <tranship/kernels/shared.hpp>
#include <tranship/lanes/lane.hpp>

namespace tranship {

template <class T>
struct MulticastSpan {
  /// The copy of member m lies m * stride_bytes behind it, or, where there are places, places[m * places_step] of them.
  unsigned char* first = nullptr;
  long long stride_bytes = 0;
  int members = 0;
  long long size = 0;  ///< elements of each copy
  const int* places = nullptr;
  int places_step = 1;

  TRANSHIP_SHARED T* copy(int member) const {
    return reinterpret_cast<T*>(first + (places ? places[static_cast<long long>(member) * places_step] : member) *
                                            stride_bytes);
  }

  TRANSHIP_SHARED void store(long long i, T value) const {
    for (int m = 0; m < members; ++m) copy(m)[i] = value;
  }
  /// combine(... combine(combine(copy 0, copy 1), copy 2) ..., the last copy), each as a T; below, as a Value.
  template <class Op>
  TRANSHIP_SHARED auto load_reduce(long long i, const Op& combine) const {
    auto value = copy(0)[i];
    for (int m = 1; m < members; ++m) value = combine(value, copy(m)[i]);
    return value;
  }

  // The same of elements from `at` on, as many as `source` and `target` have, which all copies must have as well; by
  // one thread, or each lane of a group its part.

  TRANSHIP_SHARED void store(long long at, Span<const T> source, int lane = 0, int lanes = 1) const {
    by_parts(source.size, lane, lanes, [&](long long lower, long long upper, int step) {
      for (int m = 0; m < members; ++m)
        for (long long i = lower; i < upper; i += step) copy(m)[at + i] = source[i];
    });
  }
  template <class Value, class Op>
  TRANSHIP_SHARED void load_reduce(Span<Value> target, long long at, const Op& combine, int lane = 0,
                                   int lanes = 1) const {
    by_parts(target.size, lane, lanes, [&](long long lower, long long upper, int step) {
      for (long long i = lower; i < upper; i += step) target[i] = copy(0)[at + i];
      for (int m = 1; m < members; ++m)
        for (long long i = lower; i < upper; i += step) target[i] = combine(target[i], copy(m)[at + i]);
    });
  }

 private:
  /// One thread goes through parts that stay in its nearest cache for all copies; lanes lie side by side.
  template <class F>
  TRANSHIP_SHARED static void by_parts(long long count, int lane, int lanes, const F& f) {
    if (lanes > 1) return f(lane, count, lanes);
    constexpr long long part = 8192 / sizeof(T) > 0 ? 8192 / sizeof(T) : 1;
    for (long long lower = 0; lower < count; lower += part) f(lower, lower + part < count ? lower + part : count, 1);
  }
};

}  // namespace tranship
