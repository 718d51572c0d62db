// Detail: HeapView, one-sided transfers from within a kernel, by one lane, a warp or a block. fabric/context.hpp says
// what completes when. Here an operation also has a group of lanes (lane.hpp), which make it once, together:
//
//   heap.put(lane.block(), target, source, peer);     // all lanes of the block copy
//   heap.add(lane.thread(), counter, 1, peer);        // each lane adds
//
// All lanes of the group make the call at the same place with the same arguments, and all get its result. The operation
// begins when all lanes have come, so it puts what any of them has written; when it returns, all of them may use the
// buffers again. Forms with _nbi return when a lane has done its part; quiet() of the same group waits for all parts.
//
// Symmetric objects are named by this rank's own addresses. If spans differ in size, the smaller size is moved; arrays
// of more dimensions (StridedSpan) must have equal extents. Misuse is found before anything happens; on a GPU it stops
// the kernel. collectives.hpp has the calls that all members of a team make together.
#pragma once

#include <tranship/kernels/word.hpp>
#include <tranship/lanes/contiguous.hpp>
#include <tranship/lanes/heap_table.hpp>
#include <tranship/lanes/lane.hpp>
#include <tranship/lanes/multicast.hpp>
#include <tranship/lanes/strided.hpp>
#include <tranship/lanes/wait_guard.hpp>

namespace tranship {
namespace detail {

template <class Group, class Call>
class TeamCall;

/// Keeps T from being deduced here, so that the other arguments decide it.
template <class T>
struct SameType {
  using Type = T;
};
template <class T>
using Same = typename SameType<T>::Type;
/// Elements of atomics, as in fabric/context.hpp.
template <class T>
concept LaneElement = sizeof(T) == 4 || sizeof(T) == 8;
template <class T>
concept LaneInteger = LaneElement<T> && requires(T a) {
  a& a;
};

template <class T>
TRANSHIP_SHARED inline bool is_in_place(const void* at) {
  return reinterpret_cast<unsigned long long>(at) % sizeof(T) == 0;
}

/// Elements that lanes have written, at the target strides of the block.
struct LaneTarget {
  CopyBlock block;
  int width = 1;
  const void* data = nullptr;
};

}  // namespace detail

/// The symmetric heaps of all ranks, as one rank sees them. A value that can be passed to kernels. A Context of this
/// rank carries transfers to ranks that are not direct.
struct HeapView {
  HeapTable heaps;
  int rank = 0;
  int size = 0;
  WaitGuard* guard = nullptr;  ///< of waits on a device, in its memory

  TRANSHIP_SHARED bool is_direct(int peer) const { return heaps.is_direct(peer); }

  // Put and get contiguous elements.

  template <class Group, class T>
  TRANSHIP_SHARED void put(const Group& group, Span<T> target, detail::Same<Span<const T>> source, int peer,
                           KernelSite where = KernelSite::here()) const {
    const auto call = transfer("put", target, source, peer, where);
    copy_there(group, call, target, source, peer, [&](const auto& m) { m.put(target, source, peer, where); });
    group.leave(call);
  }
  template <class Group, class T>
  TRANSHIP_SHARED void put_nbi(const Group& group, Span<T> target, detail::Same<Span<const T>> source, int peer,
                               KernelSite where = KernelSite::here()) const {
    const auto call = transfer("put_nbi", target, source, peer, where);
    copy_there(group, call, target, source, peer, [&](const auto& m) { m.put_nbi(target, source, peer, where); });
  }
  template <class Group, class T>
  TRANSHIP_SHARED void get(const Group& group, Span<T> target, detail::Same<Span<const T>> source, int peer,
                           KernelSite where = KernelSite::here()) const {
    const auto call = transfer("get", target, source, peer, where);
    copy_here(group, call, target, source, peer, [&](const auto& m) { m.get(target, source, peer, where); });
    group.leave(call);
    got(group, call, target, source, peer);
  }
  template <class Group, class T>
  TRANSHIP_SHARED void get_nbi(const Group& group, Span<T> target, detail::Same<Span<const T>> source, int peer,
                               KernelSite where = KernelSite::here()) const {
    const auto call = transfer("get_nbi", target, source, peer, where);
    copy_here(group, call, target, source, peer, [&](const auto& m) { m.get_nbi(target, source, peer, where); });
    got(group, call, target, source, peer);
  }

  // Put and get arrays. Element (i, j, ...) of one side goes to element (i, j, ...) of the other, whatever their
  // strides. Arrays with different extents are refused. All elements of a target must be distinct.

  template <class Group, class T>
  TRANSHIP_SHARED void put(const Group& group, StridedSpan<T> target, detail::Same<StridedSpan<const T>> source,
                           int peer, KernelSite where = KernelSite::here()) const {
    const auto call = transfer("put", target, source, peer, where);
    copy_array_there(group, call, target, source, peer, [&](const auto& m) { m.put(target, source, peer, where); });
    group.leave(call);
  }
  template <class Group, class T>
  TRANSHIP_SHARED void put_nbi(const Group& group, StridedSpan<T> target, detail::Same<StridedSpan<const T>> source,
                               int peer, KernelSite where = KernelSite::here()) const {
    const auto call = transfer("put_nbi", target, source, peer, where);
    copy_array_there(group, call, target, source, peer, [&](const auto& m) { m.put_nbi(target, source, peer, where); });
  }
  template <class Group, class T>
  TRANSHIP_SHARED void get(const Group& group, StridedSpan<T> target, detail::Same<StridedSpan<const T>> source,
                           int peer, KernelSite where = KernelSite::here()) const {
    const auto call = transfer("get", target, source, peer, where);
    copy_array_here(group, call, target, source, peer, [&](const auto& m) { m.get(target, source, peer, where); });
    group.leave(call);
    got(group, call, target, source, peer);
  }
  template <class Group, class T>
  TRANSHIP_SHARED void get_nbi(const Group& group, StridedSpan<T> target, detail::Same<StridedSpan<const T>> source,
                               int peer, KernelSite where = KernelSite::here()) const {
    const auto call = transfer("get_nbi", target, source, peer, where);
    copy_array_here(group, call, target, source, peer, [&](const auto& m) { m.get_nbi(target, source, peer, where); });
    got(group, call, target, source, peer);
  }
  template <class Group, class T, class S>
  TRANSHIP_SHARED void put_signal(const Group& group, StridedSpan<T> target, detail::Same<StridedSpan<const T>> source,
                                  S* signal, detail::Same<S> value, SignalOp op, int peer,
                                  KernelSite where = KernelSite::here()) const {
    put_array_signal_as("put_signal", group, target, source, signal, value, op, peer, where,
                        [&](const auto& m) { m.put_signal(target, source, signal, value, op, peer, where); });
  }
  /// The source may be used again after quiet(). A rank that sees the signal also sees the data, as with put_signal().
  template <class Group, class T, class S>
  TRANSHIP_SHARED void put_signal_nbi(const Group& group, StridedSpan<T> target,
                                      detail::Same<StridedSpan<const T>> source, S* signal, detail::Same<S> value,
                                      SignalOp op, int peer, KernelSite where = KernelSite::here()) const {
    put_array_signal_as("put_signal_nbi", group, target, source, signal, value, op, peer, where,
                        [&](const auto& m) { m.put_signal_nbi(target, source, signal, value, op, peer, where); });
  }

  // Put and get one element of 1, 2, 4 or 8 bytes.

  template <class Group, class T>
  TRANSHIP_SHARED void p(const Group& group, T* target, detail::Same<T> value, int peer,
                         KernelSite where = KernelSite::here()) const {
    const auto call = [&] {
      return GroupCall{"p", where, {{"target", target}, {"value", bits(value)}, {"peer", number(peer)}}};
    };
    unsigned char* to = at(group, call, "the target lies outside the symmetric heap", target, sizeof(T), peer);
    group.enter(call);
    if (group.lane() == 0) {
      if (!is_direct(peer))
        by_message(group, [&](const auto& m) { m.p(target, value, peer, where); });
      else if (detail::is_in_place<T>(to))
        detail::store_word(reinterpret_cast<detail::Word<T>*>(to), bits(value));
      else
        detail::store(value, to);
    }
    group.leave(call);
  }
  template <class Group, class T>
  TRANSHIP_SHARED detail::Mutable<T> g(const Group& group, T* source, int peer,
                                       KernelSite where = KernelSite::here()) const {
    using Value = detail::Mutable<T>;
    const auto call = [&] { return GroupCall{"g", where, {{"source", source}, {"peer", number(peer)}}}; };
    const unsigned char* from = at(group, call, "the source lies outside the symmetric heap", source, sizeof(T), peer);
    group.enter(call);
    Value value{};
    if (group.lane() == 0) {
      if (!is_direct(peer))
        by_message(group, [&](const auto& m) { value = m.g(source, peer, where); });
      else if (detail::is_in_place<T>(from))
        value = of_bits<Value>(detail::load_word(reinterpret_cast<const detail::Word<T>*>(from)));
      else
        value = detail::load<Value>(from);
      polled(group, call, source, peer, bits(value));
    }
    return group.share(call, value);
  }

  // Signals are integers of 8 bytes.

  template <class Group, class T, class S>
  TRANSHIP_SHARED void put_signal(const Group& group, Span<T> target, detail::Same<Span<const T>> source, S* signal,
                                  detail::Same<S> value, SignalOp op, int peer,
                                  KernelSite where = KernelSite::here()) const {
    put_signal_as("put_signal", group, target, source, signal, value, op, peer, where,
                  [&](const auto& m) { m.put_signal(target, source, signal, value, op, peer, where); });
  }
  /// The source may be used again after quiet(). A rank that sees the signal also sees the data, as with put_signal().
  template <class Group, class T, class S>
  TRANSHIP_SHARED void put_signal_nbi(const Group& group, Span<T> target, detail::Same<Span<const T>> source, S* signal,
                                      detail::Same<S> value, SignalOp op, int peer,
                                      KernelSite where = KernelSite::here()) const {
    put_signal_as("put_signal_nbi", group, target, source, signal, value, op, peer, where,
                  [&](const auto& m) { m.put_signal_nbi(target, source, signal, value, op, peer, where); });
  }
  /// Raises a signal without data. It is not ordered after earlier operations; call fence() before it if it must be.
  template <class Group, class S>
  TRANSHIP_SHARED void signal(const Group& group, S* signal, detail::Same<S> value, SignalOp op, int peer,
                              KernelSite where = KernelSite::here()) const {
    const auto call = [&] {
      return GroupCall{"signal",
                       where,
                       {{"signal", signal}, {"value", bits(value)}, {"op", number(int(op))}, {"peer", number(peer)}}};
    };
    unsigned char* word = word_at(group, call, "the signal lies outside the symmetric heap", signal, peer);
    group.enter(call);
    if (group.lane() == 0) {
      if (is_direct(peer))
        raise(word, value, op);
      else
        by_message(group, [&](const auto& m) { m.signal(signal, value, op, peer, where); });
    }
    group.leave(call);
  }
  /// Returns this rank's signal. The data that was put with the returned value has arrived.
  template <class Group, class S>
  TRANSHIP_SHARED S signal_fetch(const Group& group, S* signal, KernelSite where = KernelSite::here()) const {
    static_assert(sizeof(S) == 8);
    const auto call = [&] { return GroupCall{"signal_fetch", where, {{"signal", signal}}}; };
    word_at(group, call, "the signal lies outside the symmetric heap", signal, rank);
    group.enter(call);
    S seen{};
    if (group.lane() == 0) {
      poll(group);
      seen = detail::load_word(signal);
      detail::acquire_word(signal, seen, reach());
      acquire(group, signal);
      if constexpr (requires { group.polled(call, signal, rank, bits(seen)); })
        group.polled(call, signal, rank, bits(seen));
    }
    return group.share(call, seen);
  }
  /// Waits until this rank's signal compares with `value` as `comparison` says, and returns the signal. Afterwards all
  /// lanes of the group see the data that was put with it. A group that tells another rank of it by a signal or a p()
  /// must call fence() first.
  template <class Group, class S>
  TRANSHIP_SHARED S signal_wait(const Group& group, S* signal, Comparison comparison, detail::Same<S> value,
                                KernelSite where = KernelSite::here()) const {
    static_assert(sizeof(S) == 8);
    return wait("signal_wait", group, signal, comparison, value, where);
  }

  // Wait for, or test, any integers that are put here. As signal_wait() does, each orders what was put before what it
  // sees.

  template <class Group, class T>
  TRANSHIP_SHARED T wait_until(const Group& group, T* variable, Comparison comparison, detail::Same<T> value,
                               KernelSite where = KernelSite::here()) const {
    return wait("wait_until", group, variable, comparison, value, where);
  }
  /// Returns true if the variable compares so now. Loops over tests end as waits do.
  template <class Group, class T>
  TRANSHIP_SHARED bool test(const Group& group, T* variable, Comparison comparison, detail::Same<T> value,
                            KernelSite where = KernelSite::here()) const {
    const Variables<T> all{{variable, 1}, comparison, value, {}};
    const auto call = [&] {
      return GroupCall{
          "test", where, {{"variable", variable}, {"comparison", number(int(comparison))}, {"value", bits(value)}}};
    };
    return look(group, call, all, [&] { return find_any(group, all) == 0; });
  }
  /// Wait for or test several variables. A nonzero skip[i], if there is one, leaves out variable i. Without variables,
  /// `all` is true at once and `any` returns -1.
  template <class Group, class T>
  TRANSHIP_SHARED void wait_until_all(const Group& group, Span<T> variables, Comparison comparison,
                                      detail::Same<T> value, Span<const int> skip = {},
                                      KernelSite where = KernelSite::here()) const {
    const Variables<T> all{variables, comparison, value, skip};
    const auto call = of_several("wait_until_all", all, where);
    check(group, call, variables);
    group.enter(call);
    if (group.lane() == 0)
      for (long long i = 0; i < variables.size; ++i)
        if (!all.is_skipped(i)) await(group, call, variables.data + i, comparison, value);
    group.leave(call);
  }
  template <class Group, class T>
  TRANSHIP_SHARED long long wait_until_any(const Group& group, Span<T> variables, Comparison comparison,
                                           detail::Same<T> value, Span<const int> skip = {},
                                           KernelSite where = KernelSite::here()) const {
    const Variables<T> all{variables, comparison, value, skip};
    const auto call = of_several("wait_until_any", all, where);
    check(group, call, variables);
    group.enter(call);
    long long place = -1;
    if (group.lane() == 0) place = await_any(group, call, all);
    return group.share(call, place);
  }
  /// Waits for at least one variable and writes the indices of all that have come into `places`, which needs room for
  /// all variables and must be the same memory for all lanes. Returns their number; 0 only if there are no variables.
  template <class Group, class T, class I>
  TRANSHIP_SHARED long long wait_until_some(const Group& group, Span<T> variables, Span<I> places,
                                            Comparison comparison, detail::Same<T> value, Span<const int> skip = {},
                                            KernelSite where = KernelSite::here()) const {
    const Variables<T> all{variables, comparison, value, skip};
    const auto call = of_some("wait_until_some", all, places, where);
    check(group, call, variables);
    check_room(group, call, variables, places);
    group.enter(call);
    long long count = 0;
    if (group.lane() == 0 && await_any(group, call, all) >= 0) count = find_some(group, all, places);
    return group.share(call, count);
  }
  template <class Group, class T>
  TRANSHIP_SHARED bool test_all(const Group& group, Span<T> variables, Comparison comparison, detail::Same<T> value,
                                Span<const int> skip = {}, KernelSite where = KernelSite::here()) const {
    const Variables<T> all{variables, comparison, value, skip};
    return look(group, of_several("test_all", all, where), all, [&] {
      for (long long i = 0; i < variables.size; ++i)
        if (!all.is_skipped(i) && !found(group, all, i)) return false;
      return true;
    });
  }
  template <class Group, class T>
  TRANSHIP_SHARED long long test_any(const Group& group, Span<T> variables, Comparison comparison,
                                     detail::Same<T> value, Span<const int> skip = {},
                                     KernelSite where = KernelSite::here()) const {
    const Variables<T> all{variables, comparison, value, skip};
    // Counts from 1, so that "none" is false.
    return look(group, of_several("test_any", all, where), all, [&] { return find_any(group, all) + 1; }) - 1;
  }
  template <class Group, class T, class I>
  TRANSHIP_SHARED long long test_some(const Group& group, Span<T> variables, Span<I> places, Comparison comparison,
                                      detail::Same<T> value, Span<const int> skip = {},
                                      KernelSite where = KernelSite::here()) const {
    const Variables<T> all{variables, comparison, value, skip};
    const auto call = of_some("test_some", all, places, where);
    check_room(group, call, variables, places);
    return look(group, call, all, [&] { return find_some(group, all, places); });
  }

  // Atomics on the first element of `variable` at `peer`: the calls of Context, with the group as the first argument
  // and a pointer to the variable. Calls with a result return the previous value. Calls with _nbi write it into
  // `before`, the same memory for all lanes, where it is valid after quiet().

#define TRANSHIP_VARIABLE_nothing(T) const T
#define TRANSHIP_VARIABLE_one(T) T
#define TRANSHIP_VARIABLE_value(T) T
#define TRANSHIP_VARIABLE_exchange(T) T
#define TRANSHIP_ATOMIC_fetched(name, op, elements, takes)                                                          \
  template <class Group, detail::Lane##elements T>                                                                  \
  TRANSHIP_SHARED T name(const Group& group, TRANSHIP_VARIABLE_##takes(T) * variable,                               \
                         TRANSHIP_TAKES_##takes(detail::Same<T>) int peer, KernelSite where = KernelSite::here())   \
      const {                                                                                                       \
    return atomic<AtomicOp::op>(#name, group, const_cast<T*>(variable), TRANSHIP_OPERANDS_##takes(T), peer, where); \
  }                                                                                                                 \
  template <class Group, detail::Lane##elements T>                                                                  \
  TRANSHIP_SHARED void name##_nbi(                                                                                  \
      const Group& group, T* before, TRANSHIP_VARIABLE_##takes(detail::Same<T>) * variable,                         \
      TRANSHIP_TAKES_##takes(detail::Same<T>) int peer, KernelSite where = KernelSite::here()) const {              \
    atomic_nbi<AtomicOp::op>(#name "_nbi", group, before, const_cast<T*>(variable), TRANSHIP_OPERANDS_##takes(T),   \
                             peer, where);                                                                          \
  }
#define TRANSHIP_ATOMIC_nothing(name, op, elements, takes)                                                     \
  template <class Group, detail::Lane##elements T>                                                             \
  TRANSHIP_SHARED void name(const Group& group, T* variable, TRANSHIP_TAKES_##takes(detail::Same<T>) int peer, \
                            KernelSite where = KernelSite::here()) const {                                     \
    atomic<AtomicOp::op>(#name, group, variable, TRANSHIP_OPERANDS_##takes(T), peer, where);                   \
  }
#define TRANSHIP_ATOMIC(name, op, elements, takes, returns, word) TRANSHIP_ATOMIC_##returns(name, op, elements, takes)
#include <tranship/kernels/atomics.def>
#undef TRANSHIP_ATOMIC_fetched
#undef TRANSHIP_ATOMIC_nothing
#undef TRANSHIP_VARIABLE_nothing
#undef TRANSHIP_VARIABLE_one
#undef TRANSHIP_VARIABLE_value
#undef TRANSHIP_VARIABLE_exchange

  // Order everything that the lanes of the group have done before.

  template <class Group>
  TRANSHIP_SHARED void fence(const Group& group, KernelSite where = KernelSite::here()) const {
    order(
        group,
        [&] {
          return GroupCall{"fence", where};
        },
        [&] { detail::word_fence(reach()); }, [&](const auto& m) { m.fence(where); });
  }
  template <class Group>
  TRANSHIP_SHARED void quiet(const Group& group, KernelSite where = KernelSite::here()) const {
    order(
        group,
        [&] {
          return GroupCall{"quiet", where};
        },
        [&] { detail::full_fence(reach()); }, [&](const auto& m) { m.quiet(where); });
  }

  /// Returns true if a wait under the guard has given up, on this rank or another one. The kernel should then return,
  /// because no later wait ends in another way. All lanes of the group get the same answer. Always false on the CPU,
  /// where waits throw, and if a wait that gives up traps.
  template <class Group>
  TRANSHIP_SHARED bool gave_up(const Group& group, KernelSite where = KernelSite::here()) const {
    const auto call = [&] { return GroupCall{"gave_up", where}; };
    group.enter(call);
    bool has_given_up = false;
    if (group.lane() == 0 && guard)
      has_given_up = detail::load_word(&guard->state) == static_cast<unsigned long long>(WaitGuard::given_up);
    return group.share(call, has_given_up);
  }

  // Memory of peers that this rank can load and store.

  /// Returns the elements of `array` at `peer`; refused if this rank cannot load and store them.
  template <class Group, class T>
  TRANSHIP_SHARED Span<T> peer_array(const Group& group, Span<T> array, int peer,
                                     KernelSite where = KernelSite::here()) const {
    const auto call = [&] {
      return GroupCall{
          "peer_array", where, {{"array", array.data}, {"elements", number(array.size)}, {"peer", number(peer)}}};
    };
    if (!is_direct(peer) && peer != rank) group.refuse(call, "the memory of that peer is not reachable");
    return {reinterpret_cast<T*>(at(group, call, "the array lies outside the symmetric heap", array.data,
                                    bytes_of(array.size, sizeof(T)), peer)),
            array.size};
  }
  /// Returns the elements of `array` at `count` ranks of the world: first_rank, first_rank + stride, ..., the members
  /// of a team. Refused if this rank cannot load and store them.
  template <class Group, class T>
  TRANSHIP_SHARED MulticastSpan<T> multicast_array(const Group& group, Span<T> array, int first_rank, int stride,
                                                   int count, KernelSite where = KernelSite::here()) const {
    const auto call = [&] {
      return GroupCall{"multicast_array",
                       where,
                       {{"array", array.data},
                        {"elements", number(array.size)},
                        {"first", number(first_rank)},
                        {"stride", number(stride)},
                        {"count", number(count)}}};
    };
    const long long last_rank = first_rank + (count - 1) * static_cast<long long>(stride);
    if (count < 1 || (count > 1 && stride == 0) || last_rank < 0 || last_rank >= size)
      group.refuse(call, "there is no such team");
    for (int member = 0; member < count; ++member)
      if (const int peer = first_rank + member * stride; !is_direct(peer) && (count > 1 || peer != rank))
        group.refuse(call, "the memory of peers is not reachable");
    at(group, call, "the array lies outside the symmetric heap", array.data, bytes_of(array.size, sizeof(T)),
       first_rank);
    return {heaps, heaps.offset_of(array.data), first_rank, stride, nullptr, count, array.size};
  }

 private:
  template <class Group, class Call>
  friend class detail::TeamCall;

  /// Returns this rank's own heap for a peer that is not direct: transfers to such a peer are named by their place
  /// there.
  TRANSHIP_SHARED unsigned char* heap_of(int peer) const {
    unsigned char* const heap = heaps.heap_of(peer);
    return heap ? heap : heaps.own;
  }

  TRANSHIP_SHARED static unsigned long long number(long long value) {
    return static_cast<unsigned long long>(value);
  }
  template <class T>
  TRANSHIP_SHARED static detail::Word<detail::Mutable<T>> bits(T value) {
    static_assert(__is_trivially_copyable(T));
    return __builtin_bit_cast(detail::Word<detail::Mutable<T>>, value);
  }
  template <class T, class W>
  TRANSHIP_SHARED static T of_bits(W word) {
    return __builtin_bit_cast(T, word);
  }
  template <class T>
  TRANSHIP_SHARED static long long smaller(Span<T> target, Span<const T> source) {
    static_assert(__is_trivially_copyable(T));
    return target.size < source.size ? target.size : source.size;
  }
  template <class T>
  TRANSHIP_SHARED static GroupCall::Argument elements(Span<T> target, Span<const T> source) {
    return {"elements", number(smaller(target, source))};
  }

  template <class T>
  TRANSHIP_SHARED static auto transfer(const char* name, Span<T> target, Span<const T> source, int peer,
                                       KernelSite where) {
    return [=] {
      return GroupCall{
          name,
          where,
          {{"target", target.data}, {"source", source.data}, elements(target, source), {"peer", number(peer)}}};
    };
  }

  template <class T>
  TRANSHIP_SHARED static auto transfer(const char* name, const StridedSpan<T>& target,
                                       const StridedSpan<const T>& source, int peer, KernelSite where) {
    return [&target, &source, name, peer, where] {
      return GroupCall{name,
                       where,
                       {{"target", target.data},
                        {"source", source.data},
                        {"target shape", detail::mark_of(target)},
                        {"source shape", detail::mark_of(source)},
                        {"peer", number(peer)}}};
    };
  }

  /// Returns the address of this rank's `local` at `peer`, in this rank's address space.
  template <class Group, class Call>
  TRANSHIP_SHARED unsigned char* at(const Group& group, const Call& call, const char* problem, const void* local,
                                    unsigned long long bytes, int peer) const {
    if (peer < 0 || peer >= size) group.refuse(call, "there is no such peer");
    const unsigned long long offset = bytes == 0 ? 0 : heaps.offset_of(local);
    if (!heaps.contains(offset, bytes)) group.refuse(call, problem);
    if constexpr (requires { group.check_block(call, offset, bytes); }) group.check_block(call, offset, bytes);
    return heap_of(peer) + offset;
  }

  /// Returns the address of a slice of which `bytes` are moved; if there are any, the whole slice must lie in the heap.
  template <class T, class Group, class Call>
  TRANSHIP_SHARED unsigned char* slice_at(const Group& group, const Call& call, const char* problem, Span<T> slice,
                                          unsigned long long bytes, int peer) const {
    const unsigned long long all = bytes_of(slice.size, sizeof(T));
    if (bytes > 0 && !heaps.contains(heaps.offset_of(slice.data), all)) group.refuse(call, problem);
    return at(group, call, problem, slice.data, bytes, peer);
  }
  /// Returns the address of words that are raised, updated or waited for, which must be aligned.
  template <class T, class Group, class Call>
  TRANSHIP_SHARED unsigned char* words_at(const Group& group, const Call& call, const char* problem, const T* local,
                                          unsigned long long bytes, int peer) const {
    unsigned char* const there = at(group, call, problem, local, bytes, peer);
    if (bytes > 0 && !detail::is_in_place<T>(local))
      group.refuse(call, sizeof(T) == 8   ? "a word of 8 bytes is not aligned to its size"
                         : sizeof(T) == 4 ? "a word of 4 bytes is not aligned to its size"
                                          : "a word is not aligned to its size");
    return there;
  }
  template <class T, class Group, class Call>
  TRANSHIP_SHARED unsigned char* word_at(const Group& group, const Call& call, const char* problem, const T* local,
                                         int peer) const {
    return words_at(group, call, problem, local, sizeof(T), peer);
  }

  /// Called when a value arrives for which a loop may poll.
  template <class Group, class Call>
  TRANSHIP_SHARED void polled(const Group& group, const Call& call, const void* local, int peer,
                              unsigned long long seen) const {
    if constexpr (requires { group.carried(); }) {
      if (is_direct(peer))
        group.polled(call, local, peer, seen);
      else
        group.carried();
    }
  }
  /// Called when elements arrive for which a loop may poll.
  template <class Group, class Call, template <class> class Elements, class T>
  TRANSHIP_SHARED void got(const Group& group, const Call& call, const Elements<T>& target,
                           const Elements<const T>& source, int peer) const {
    if constexpr (requires { group.carried(); }) {
      if (group.lane() != 0) return;
      if (is_direct(peer))
        group.got(call, source.data, peer, [&] { return target_of(target, source); });
      else
        group.carried();
    }
  }
  template <class T>
  TRANSHIP_SHARED static detail::LaneTarget target_of(const Span<T>& target, const Span<const T>& source) {
    detail::LaneTarget out{.data = target.data};
    out.block = row_of(static_cast<long long>(bytes_of(smaller(target, source), sizeof(T))), 1);
    return out;
  }
  template <class T>
  TRANSHIP_SHARED static detail::LaneTarget target_of(const StridedSpan<T>& target,
                                                      const StridedSpan<const T>& source) {
    return {detail::block_of(target, source), detail::strided_width<T>, target.data};
  }
  /// Returns the bytes of `count` elements; the largest number for an impossible count.
  TRANSHIP_SHARED static unsigned long long bytes_of(long long count, unsigned long long width) {
    const auto most = ~0ull;
    return count < 0 || static_cast<unsigned long long>(count) > most / width ? most : count * width;
  }

  template <class Group, class F>
  TRANSHIP_SHARED static void by_message(const Group& group, const F& send) {
    if constexpr (requires { group.messenger(); })
      send(group.messenger());
    else
      detail::trap();
  }

  /// Copies lane `lane`'s share, out of `lanes`, of `bytes` bytes.
  template <class Group>
  TRANSHIP_SHARED static void copy_by(int lane, int lanes, void* to, const void* from, unsigned long long bytes) {
    if constexpr (Group::runs_side_by_side)
      detail::copy_interleaved(lane, lanes, to, from, bytes);
    else
      detail::copy_in_runs(lane, lanes, to, from, bytes);
  }
  template <class Group>
  TRANSHIP_SHARED static void copy_together(const Group& group, void* to, const void* from, unsigned long long bytes) {
    copy_by<Group>(group.lane(), group.lanes(), to, from, bytes);
  }
  template <class Group, class Call, class T, class F>
  TRANSHIP_SHARED void copy_there(const Group& group, const Call& call, Span<T> target, Span<const T> source, int peer,
                                  const F& send) const {
    const unsigned long long bytes = bytes_of(smaller(target, source), sizeof(T));
    void* to = slice_at(group, call, "the target lies outside the symmetric heap", target, bytes, peer);
    group.enter(call);
    if (is_direct(peer))
      copy_together(group, to, source.data, bytes);
    else if (group.lane() == 0)
      by_message(group, send);
  }
  template <class Group, class Call, class T, class F>
  TRANSHIP_SHARED void copy_here(const Group& group, const Call& call, Span<T> target, Span<const T> source, int peer,
                                 const F& send) const {
    const unsigned long long bytes = bytes_of(smaller(target, source), sizeof(T));
    const void* from = slice_at(group, call, "the source lies outside the symmetric heap", source, bytes, peer);
    group.enter(call);
    if (is_direct(peer))
      copy_together(group, target.data, from, bytes);
    else if (group.lane() == 0)
      by_message(group, send);
  }

  /// Refuses two arrays with different extents.
  template <class Group, class Call, class T>
  TRANSHIP_SHARED static void check_extents(const Group& group, const Call& call, const StridedSpan<T>& target,
                                            const StridedSpan<const T>& source) {
    constexpr int dims_max = StridedSpan<T>::dims_max;
    const auto refuse = [&](const char* problem, const char* of_target, long long first, const char* of_source,
                            long long second) {
      const auto both = [&] {
        const GroupCall made = call();
        return GroupCall{made.name, made.where, {{of_target, number(first)}, {of_source, number(second)}}};
      };
      group.refuse(both, problem);
    };
    constexpr const char* another_shape = "the target has another shape than the source";
    if (target.dims < 0 || target.dims > dims_max)
      refuse("an array must have 0 to 7 dimensions", "target dimensions", target.dims, "source dimensions",
             source.dims);
    if (target.dims != source.dims)
      refuse(another_shape, "target dimensions", target.dims, "source dimensions", source.dims);
    for (int d = 0; d < target.dims; ++d)
      if (target.extents[d] != source.extents[d])
        refuse(another_shape, "target extent", target.extents[d], "source extent", source.extents[d]);
  }
  /// Returns the address of this rank's array at `peer`.
  template <class Group, class Call, class T>
  TRANSHIP_SHARED unsigned char* array_at(const Group& group, const Call& call, const char* problem,
                                          const StridedSpan<T>& array, int peer) const {
    const detail::StridedReach reach = detail::reach_of(array, heaps.size_bytes);
    if (reach.bytes < 0) group.refuse(call, problem);
    const auto* local = reinterpret_cast<const unsigned char*>(array.data) + reach.first;
    return at(group, call, problem, local, static_cast<unsigned long long>(reach.bytes), peer) - reach.first;
  }
  template <class Group, class T>
  TRANSHIP_SHARED static void copy_arrays_together(const Group& group, const StridedSpan<T>& target,
                                                   const StridedSpan<const T>& source, void* to, const void* from) {
    auto* there = static_cast<unsigned char*>(to);
    const auto* here = static_cast<const unsigned char*>(from);
    const auto is_row = [](const auto& block, int width) {
      return block.dims == 1 && block.source_strides[0] == width && block.target_strides[0] == width;
    };
    if constexpr (Group::runs_side_by_side) {
      constexpr int width = sizeof(T);
      detail::StridedBlock block = detail::strided_block_of(target, source);
      const auto count = static_cast<unsigned long long>(block.count());
      if (count == 0) return;
      if (is_row(block, width))
        copy_together(group, there, here, count * width);
      else
        detail::copy_strided_interleaved(group.lane(), group.lanes(), block, width, there, here);
    } else {
      constexpr int width = detail::strided_width<T>;
      const CopyBlock block = detail::block_of(target, source);
      const auto count = static_cast<unsigned long long>(element_count(block));
      if (count == 0) return;
      if (is_row(block, width))
        copy_together(group, there, here, count * width);
      else
        detail::copy_strided_in_rows<width>(group.lane(), group.lanes(), block, there, here);
    }
  }
  template <class Group, class Call, class T, class F>
  TRANSHIP_SHARED void copy_array_there(const Group& group, const Call& call, const StridedSpan<T>& target,
                                        const StridedSpan<const T>& source, int peer, const F& send) const {
    static_assert(__is_trivially_copyable(T));
    check_extents(group, call, target, source);
    if (detail::reach_of(source, ~0ull).bytes < 0) group.refuse(call, "the source is larger than memory");
    void* to = array_at(group, call, "the target lies outside the symmetric heap", target, peer);
    group.enter(call);
    if (is_direct(peer))
      copy_arrays_together(group, target, source, to, source.data);
    else if (group.lane() == 0)
      by_message(group, send);
  }
  template <class Group, class Call, class T, class F>
  TRANSHIP_SHARED void copy_array_here(const Group& group, const Call& call, const StridedSpan<T>& target,
                                       const StridedSpan<const T>& source, int peer, const F& send) const {
    static_assert(__is_trivially_copyable(T));
    check_extents(group, call, target, source);
    if (detail::reach_of(target, ~0ull).bytes < 0) group.refuse(call, "the target is larger than memory");
    const void* from = array_at(group, call, "the source lies outside the symmetric heap", source, peer);
    group.enter(call);
    if (is_direct(peer))
      copy_arrays_together(group, target, source, target.data, from);
    else if (group.lane() == 0)
      by_message(group, send);
  }

  template <class S>
  TRANSHIP_SHARED static void raise(unsigned char* at, S value, SignalOp op) {
    static_assert(sizeof(S) == 8);
    detail::raise_word(reinterpret_cast<unsigned long long*>(at), bits(value), op);
  }
  template <class Group, class T, class S, class F>
  TRANSHIP_SHARED void put_signal_as(const char* name, const Group& group, Span<T> target, Span<const T> source,
                                     S* signal, S value, SignalOp op, int peer, KernelSite where, const F& send) const {
    const auto call = [&] {
      return GroupCall{name,
                       where,
                       {{"target", target.data},
                        {"source", source.data},
                        elements(target, source),
                        {"signal", signal},
                        {"value", bits(value)},
                        {"op", number(int(op))},
                        {"peer", number(peer)}}};
    };
    unsigned char* word = word_at(group, call, "the signal lies outside the symmetric heap", signal, peer);
    copy_there(group, call, target, source, peer, send);
    raise_after(group, call, word, value, op, peer);
  }
  template <class Group, class T, class S, class F>
  TRANSHIP_SHARED void put_array_signal_as(const char* name, const Group& group, const StridedSpan<T>& target,
                                           const StridedSpan<const T>& source, S* signal, S value, SignalOp op,
                                           int peer, KernelSite where, const F& send) const {
    const auto call = [&] {
      return GroupCall{name,
                       where,
                       {{"target", target.data},
                        {"source", source.data},
                        {"target shape", detail::mark_of(target)},
                        {"source shape", detail::mark_of(source)},
                        {"signal", signal},
                        {"value", bits(value)},
                        {"op", number(int(op))},
                        {"peer", number(peer)}}};
    };
    unsigned char* word = word_at(group, call, "the signal lies outside the symmetric heap", signal, peer);
    copy_array_there(group, call, target, source, peer, send);
    raise_after(group, call, word, value, op, peer);
  }
  /// Raises the signal after all lanes have copied.
  template <class Group, class Call, class S>
  TRANSHIP_SHARED void raise_after(const Group& group, const Call& call, unsigned char* word, S value, SignalOp op,
                                   int peer) const {
    if (is_direct(peer)) {
      group.leave(call);
      if (group.lane() == 0) {
        detail::word_fence(reach());
        raise(word, value, op);
      }
    }
    group.leave(call);
  }

  template <class Group, class T>
  TRANSHIP_SHARED T wait(const char* name, const Group& group, T* variable, Comparison comparison, T value,
                         KernelSite where) const {
    const auto call = [&] {
      return GroupCall{
          name, where, {{"variable", variable}, {"comparison", number(int(comparison))}, {"value", bits(value)}}};
    };
    word_at(group, call, "the variable lies outside the symmetric heap", variable, rank);
    group.enter(call);
    T seen{};
    if (group.lane() == 0) seen = await(group, call, variable, comparison, value);
    return group.share(call, seen);
  }

  // One lane makes these calls, within an operation that all lanes have entered.

  template <class Group, class Call, class T>
  TRANSHIP_SHARED T await(const Group& group, const Call& call, const T* variable, Comparison comparison, T value,
                          int raised_by = -1) const {
    T seen{};
    group.wait(wait_place(variable, raised_by), call, variable, comparison, value, [&] {
      seen = detail::load_word(variable);
      return holds(seen, comparison, value);
    });
    detail::acquire_word(variable, seen, reach());
    acquire(group, variable);
    return seen;
  }
  TRANSHIP_SHARED detail::WaitPlace wait_place(const void* variable, int raised_by) const {
    return {guard, rank, raised_by, heaps.offset_of(variable)};
  }
  /// Returns the reach of fences.
  TRANSHIP_SHARED detail::Reach reach() const {
    return heaps.is_on_one_device ? detail::Reach::device : detail::Reach::system;
  }
  /// Called when this rank has looked at its variable.
  template <class Group, class T>
  TRANSHIP_SHARED static void acquire(const Group& group, const T* variable) {
    if constexpr (requires { group.saw(variable, sizeof(T)); }) group.saw(variable, sizeof(T));
  }
  /// Called before this rank looks for what has arrived.
  template <class Group>
  TRANSHIP_SHARED void poll(const Group& group) const {
    if constexpr (requires { group.messenger(); })
      if (!is_direct(rank)) group.messenger().poll();
  }

  /// Variables of this rank, and the condition that they are tested for.
  template <class T>
  struct Variables {
    Span<T> at;
    Comparison comparison;
    T value;
    Span<const int> skip;

    TRANSHIP_SHARED bool is_skipped(long long i) const { return i < skip.size && skip[i] != 0; }
  };
  template <class T>
  TRANSHIP_SHARED static auto of_several(const char* name, const Variables<T>& all, KernelSite where) {
    return [&all, name, where] {
      return GroupCall{name,
                       where,
                       {{"variables", all.at.data},
                        {"count", number(all.at.size)},
                        {"comparison", number(int(all.comparison))},
                        {"value", bits(all.value)},
                        {"skip", all.skip.data}}};
    };
  }
  template <class T, class I>
  TRANSHIP_SHARED static auto of_some(const char* name, const Variables<T>& all, Span<I> places, KernelSite where) {
    return [&all, places, name, where] {
      return GroupCall{name,
                       where,
                       {{"variables", all.at.data},
                        {"count", number(all.at.size)},
                        {"places", places.data},
                        {"room", number(places.size)},
                        {"comparison", number(int(all.comparison))},
                        {"value", bits(all.value)},
                        {"skip", all.skip.data}}};
    };
  }
  template <class Group, class Call, class T>
  TRANSHIP_SHARED void check(const Group& group, const Call& call, Span<T> variables) const {
    words_at(group, call, "the variables lie outside the symmetric heap", variables.data,
             bytes_of(variables.size, sizeof(T)), rank);
  }
  template <class Group, class Call, class T, class I>
  TRANSHIP_SHARED static void check_room(const Group& group, const Call& call, Span<T> variables, Span<I> places) {
    if (places.size < variables.size) group.refuse(call, "there is room for fewer places than there are variables");
  }
  template <class Group, class T>
  TRANSHIP_SHARED static bool found(const Group& group, const Variables<T>& all, long long i) {
    acquire(group, all.at.data + i);
    return holds<T>(detail::load_word(all.at.data + i), all.comparison, all.value);
  }
  template <class Group, class T>
  TRANSHIP_SHARED static long long find_any(const Group& group, const Variables<T>& all) {
    for (long long i = 0; i < all.at.size; ++i)
      if (!all.is_skipped(i) && found(group, all, i)) return i;
    return -1;
  }
  template <class Group, class T, class I>
  TRANSHIP_SHARED static long long find_some(const Group& group, const Variables<T>& all, Span<I> places) {
    long long count = 0;
    for (long long i = 0; i < all.at.size; ++i)
      if (!all.is_skipped(i) && found(group, all, i)) places[count++] = static_cast<I>(i);
    return count;
  }
  template <class Group, class Call, class T>
  TRANSHIP_SHARED long long await_any(const Group& group, const Call& call, const Variables<T>& all) const {
    long long first = 0;
    while (first < all.at.size && all.is_skipped(first)) ++first;
    if (first == all.at.size) return -1;
    long long place = -1;
    // If it fails, the message shows the first variable.
    group.wait(wait_place(all.at.data + first, -1), call, all.at.data + first, all.comparison, all.value,
               [&] { return (place = find_any(group, all)) >= 0; });
    if constexpr (Group::runs_side_by_side) detail::word_fence(reach());
    return place;
  }
  /// Looks once, by one lane. find() returns 0 or false if it has found nothing.
  template <class Group, class Call, class T, class Find>
  TRANSHIP_SHARED auto look(const Group& group, const Call& call, const Variables<T>& all, const Find& find) const {
    check(group, call, all.at);
    group.enter(call);
    decltype(find()) result{};
    if (group.lane() == 0) {
      poll(group);
      result = find();
      if (result) {
        if constexpr (Group::runs_side_by_side) detail::word_fence(reach());
      } else if (all.at.size > 0) {
        if constexpr (requires { group.missed(call, all.at.data, all.comparison, all.value); })
          group.missed(call, all.at.data, all.comparison, all.value);
      }
    }
    return group.share(call, result);
  }

  template <AtomicOp op, class Group, class T>
  TRANSHIP_SHARED T atomic(const char* name, const Group& group, T* variable, T operand, T expected, int peer,
                           KernelSite where) const {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    const auto call = [&] {
      return GroupCall{
          name,
          where,
          {{"variable", variable}, {"operand", bits(operand)}, {"expected", bits(expected)}, {"peer", number(peer)}}};
    };
    unsigned char* to = word_at(group, call, "the variable lies outside the symmetric heap", variable, peer);
    group.enter(call);
    T before{};
    if (group.lane() == 0) {
      if (is_direct(peer))
        before =
            of_bits<T>(detail::update_word<op>(reinterpret_cast<detail::Word<T>*>(to), bits(operand), bits(expected)));
      else
        by_message(group,
                   [&](const auto& m) { before = m.template atomic<op>(variable, operand, expected, peer, where); });
      if constexpr (op != AtomicOp::set) polled(group, call, variable, peer, bits(before));
    }
    return group.share(call, before);
  }

  template <AtomicOp op, class Group, class T>
  TRANSHIP_SHARED void atomic_nbi(const char* name, const Group& group, T* before, T* variable, T operand, T expected,
                                  int peer, KernelSite where) const {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    const auto call = [&] {
      return GroupCall{name,
                       where,
                       {{"before", before},
                        {"variable", variable},
                        {"operand", bits(operand)},
                        {"expected", bits(expected)},
                        {"peer", number(peer)}}};
    };
    unsigned char* to = word_at(group, call, "the variable lies outside the symmetric heap", variable, peer);
    group.enter(call);
    if (group.lane() != 0) return;
    unsigned long long seen = 0;
    if (is_direct(peer)) {
      *before =
          of_bits<T>(detail::update_word<op>(reinterpret_cast<detail::Word<T>*>(to), bits(operand), bits(expected)));
      seen = bits(*before);
    } else {
      by_message(group,
                 [&](const auto& m) { m.template atomic_nbi<op>(before, variable, operand, expected, peer, where); });
    }
    polled(group, call, variable, peer, seen);
  }

  template <class Group, class Call, class Fence, class F>
  TRANSHIP_SHARED void order(const Group& group, const Call& call, const Fence& fence, const F& send) const {
    group.enter(call);
    if (group.lane() == 0) {
      if (heaps.is_complete)
        fence();
      else
        by_message(group, send);
    }
    group.leave(call);
  }
};

}  // namespace tranship
