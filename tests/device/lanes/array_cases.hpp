// These cases of device_lanes cover arrays of up to seven dimensions, and memory of peers that lanes load and store by
// themselves. Shapes are random (runs.cpp) and are read from the arena. Next: collective_cases.hpp.
#pragma once

#include "lanes/arena.hpp"

namespace tranship::device {

inline constexpr int strided_parts_max = 8;
/// Returns the number of elements that one shape may reach over, on either side.
inline long long shape_room(int parts, int width) {
  return region_bytes / (parts < strided_parts_max ? parts : strided_parts_max) / shapes_count / width;
}

enum class StridedKind { blocking, others };

/// Covers put and get of arrays. The other kind covers put_nbi, get_nbi, put_signal and put_signal_nbi for fewer types,
/// because each call is a lot of code.
template <class T, StridedKind kind = StridedKind::blocking>
struct Strided : CaseTraits {
  static constexpr const char* name = kind == StridedKind::blocking ? "arrays" : "arrays, nbi and signals";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = kind == StridedKind::blocking ? 2 : 4;
  static constexpr int shape_width = sizeof(T);

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= strided_parts_max) return;
    const long long room = region_bytes / part.count_at_most(strided_parts_max) / static_cast<long long>(sizeof(T));
    auto* const signal = a.at<unsigned long long>(signals_at) + part.number * 8;
    for (int i = 0; i < shapes_count; ++i) {
      const Shape& shape = a.at<const Shape>(shapes_at)[i];
      StridedSpan<T> to;
      StridedSpan<const T> from;
      to.data = a.at<T>(target_at) + part.number * room + shape.target_at;
      from.data = a.at<const T>(source_at) + part.number * room + shape.source_at;
      to.dims = from.dims = static_cast<int>(shape.dims);
      for (int d = 0; d < to.dims; ++d) {
        to.extents[d] = from.extents[d] = shape.extents[d];
        to.strides[d] = shape.target_strides[d];
        from.strides[d] = shape.source_strides[d];
      }
      if constexpr (kind == StridedKind::blocking) {
        if (a.variant == 0)
          a.heap.put(group, to, from, a.next());
        else
          a.heap.get(group, to, from, a.previous());
      } else {
        if (a.variant == 0) a.heap.put_nbi(group, to, from, a.next());
        if (a.variant == 1) a.heap.get_nbi(group, to, from, a.previous());
        if (a.variant == 2) a.heap.put_signal(group, to, from, signal, 1, SignalOp::add, a.next());
        if (a.variant == 3) a.heap.put_signal_nbi(group, to, from, signal, i + 1, SignalOp::set, a.next());
        // Without the fence a later signal may come first.
        if (a.variant == 3) a.heap.fence(group);
      }
    }
    if (kind == StridedKind::others && a.variant >= 2)
      part.row(a)[0] = a.heap.signal_wait(group, signal, Comparison::greater_equal, shapes_count);
    a.heap.quiet(group);
  }
};

/// Combines members so that their order shows in the result.
template <class T>
struct Mixed {
  TRANSHIP_SHARED T operator()(T a, T b) const { return static_cast<T>(a * 31u + b); }
};

/// Covers peer_array and multicast_array. Each element has one writer.
template <class T>
struct Memories : CaseTraits {
  static constexpr const char* name = "memory of peers";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 4;
  static constexpr bool needs_memory = true;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= parts_max) return;
    const HeapView& heap = a.heap;
    const int parts = part.count_at_most(parts_max);
    const long long each = region_bytes / ranks_max / parts / static_cast<long long>(sizeof(T));
    const long long mine = (static_cast<long long>(heap.rank) * parts + part.number) * each;
    const Span<T> all(a.at<T>(target_at), region_bytes / sizeof(T));
    const Span<const T> source(a.at<const T>(source_at), region_bytes / sizeof(T));
    if (a.variant == 0) {
      const Span<T> there = heap.peer_array(group, Span<T>(all.data + mine, each), a.next());
      for (long long i = group.lane(); i < each; i += group.lanes()) there[i] = source[mine + i];
      const Span<const T> here = heap.peer_array(group, source, a.previous());
      unsigned long long sum = 0;
      for (long long i = group.lane(); i < each; i += group.lanes()) sum = sum * 31 + here[mine + i];
      part.row(a)[0] = sum;
    } else if (a.variant == 1) {
      const auto copies = heap.multicast_array(group, all, 0, 1, heap.size);
      if (group.lane() == 0) copies.store(mine, source[mine]);
      copies.store(mine + 1, Span<const T>(source.data + mine + 1, each - 2), group.lane(), group.lanes());
    } else if (a.variant == 2) {
      const auto copies = heap.multicast_array(group, source, 0, 1, heap.size);
      copies.load_reduce(Span<T>(all.data + mine, each - 1), mine, Mixed<T>(), group.lane(), group.lanes());
      part.row(a)[0] = copies.load_reduce(mine + each - 1, Mixed<T>());
    } else {
      // One array goes from the last member back; the other takes every other member.
      const auto back = heap.multicast_array(group, source, heap.size - 1, -1, heap.size);
      back.load_reduce(Span<T>(all.data + mine, each - 1), mine, Mixed<T>(), group.lane(), group.lanes());
      const auto other = heap.multicast_array(group, source, 0, 2, (heap.size + 1) / 2);
      part.row(a)[0] = other.load_reduce(mine, Mixed<T>());
      part.row(a)[1] = static_cast<unsigned long long>(other.members);
    }
    group.sync();
  }
};

using ArrayCases =
    CaseList<Of<Strided<Byte>, Scope::warp>, Of<Strided<short>, Scope::thread>, Of<Strided<int>, Scope::block>,
             Of<Strided<double>, Scope::block>, Of<Strided<Wide>, Scope::warp>, Of<Strided<Odd>, Scope::block>,
             Of<Strided<int, StridedKind::others>, Scope::block>>;
using MemoryCases =
    CaseList<Of<Memories<unsigned>, Scope::thread, Scope::block>, Of<Memories<unsigned short>, Scope::warp>>;

}  // namespace tranship::device
