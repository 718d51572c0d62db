// Detail: MulticastSpan, an array that all members of a team have at the same place of their heaps, as one array: a
// store goes to all copies, and a load combines them. It is like NVSHMEM's multicast view, but accesses each copy
// separately.
//
// Its stores are plain stores: members see them only after a fence and a signal, or a barrier. No rank may write copies
// while they are combined.
// copies that are being combined.
#pragma once

#include <tranship/kernels/shared.hpp>
#include <tranship/lanes/contiguous.hpp>
#include <tranship/lanes/heap_table.hpp>
#include <tranship/lanes/lane.hpp>

namespace tranship {

template <class T>
struct MulticastSpan {
  HeapTable heaps;                      ///< all members must be direct in it, unless this rank is the only member
  unsigned long long offset_bytes = 0;  ///< of each copy in the heap of its member
  /// Member m is rank first_rank + m * stride, or ranks[m] if `ranks` is not null.
  int first_rank = 0;
  int stride = 1;
  const int* ranks = nullptr;
  int members = 0;
  long long size = 0;  ///< elements of each copy

  TRANSHIP_SHARED T* copy(int member) const {
    unsigned char* const heap = heaps.heap_of(ranks ? ranks[member] : first_rank + member * stride);
    return reinterpret_cast<T*>((heap ? heap : heaps.own) + offset_bytes);
  }

  TRANSHIP_SHARED void store(long long i, T value) const {
    for (int m = 0; m < members; ++m) copy(m)[i] = value;
  }
  /// Returns combine(... combine(combine(copy 0, copy 1), copy 2) ..., last copy). The result of each step has type T
  /// here, and type Value in the overload below.
  template <class Op>
  TRANSHIP_SHARED auto load_reduce(long long i, const Op& combine) const {
    auto value = copy(0)[i];
    for (int m = 1; m < members; ++m) value = combine(value, copy(m)[i]);
    return value;
  }

  // Both operations for the elements from `at` on; all copies must have as many elements there as `source` or
  // `target`. Either one thread makes the call, or each lane of a group does its part.

  TRANSHIP_SHARED void store(long long at, Span<const T> source, int lane = 0, int lanes = 1) const {
    if (lanes > 1) {
      for (int m = 0; m < members; ++m)
        detail::copy_interleaved(lane, lanes, copy(m) + at, source.data,
                                 static_cast<unsigned long long>(source.size) * sizeof(T));
      return;
    }
    by_parts(source.size, [&](long long lower, long long upper) {
      for (int m = 0; m < members; ++m) {
        T* const to = copy(m) + at;
        for (long long i = lower; i < upper; ++i) to[i] = source[i];
      }
    });
  }
  template <class Value, class Op>
  TRANSHIP_SHARED void load_reduce(Span<Value> target, long long at, const Op& combine, int lane = 0,
                                   int lanes = 1) const {
    for (long long i = lane; lanes > 1 && i < target.size; i += lanes)
      target[i] = load_reduce_at_once<Value>(at + i, combine);
    if (lanes > 1) return;
    by_parts(target.size, [&](long long lower, long long upper) {
      const T* const first = copy(0) + at;
      for (long long i = lower; i < upper; ++i) target[i] = first[i];
      for (int m = 1; m < members; ++m) {
        const T* const from = copy(m) + at;
        for (long long i = lower; i < upper; ++i) target[i] = combine(target[i], from[i]);
      }
    });
  }

 private:
  /// Reads from several members before it combines the first, because separate reads would each cost the latency of a
  /// device's memory.
  template <class Value, class Op>
  TRANSHIP_SHARED Value load_reduce_at_once(long long i, const Op& combine) const {
    constexpr int ahead = 8;
    Value value = copy(0)[i];
    for (int first = 1; first < members; first += ahead) {
      detail::Mutable<T> read[ahead];
      TRANSHIP_UNROLL
      for (int k = 0; k < ahead; ++k)
        if (first + k < members) read[k] = copy(first + k)[i];
      TRANSHIP_UNROLL
      for (int k = 0; k < ahead; ++k)
        if (first + k < members) value = combine(value, read[k]);
    }
    return value;
  }
  /// One thread works on parts that stay in its nearest cache for all copies.
  template <class F>
  TRANSHIP_SHARED static void by_parts(long long count, const F& f) {
    constexpr long long part = 8192 / sizeof(T) > 0 ? 8192 / sizeof(T) : 1;
    for (long long lower = 0; lower < count; lower += part) f(lower, lower + part < count ? lower + part : count);
  }
};

}  // namespace tranship
