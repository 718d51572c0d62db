// These cases of device_lanes cover waits and tests of one variable and of several, and atomics, on words of one group
// and on words that all groups of all ranks share. The values that a shared word returns depend on time, so only its
// sum is kept. Next: array_cases.hpp.
#pragma once

#include "lanes/arena.hpp"

namespace tranship::device {

/// The previous rank sets some of eight variables; masks leave only variables whose result does not depend on time.
template <class T>
struct Waits : CaseTraits {
  static constexpr const char* name = "waits and tests";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 1;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= parts_max) return;
    constexpr auto equal = Comparison::equal;
    const HeapView& heap = a.heap;
    T* const first = a.at<T>(signals_at + part.number * 64);
    const Span<T> all(first, 8);
    const auto skip = [&](int list, int size) { return Span<const int>(a.lists().skips[list], size); };
    const Span<const int> only_4 = skip(0, 8), only_1_3_4 = skip(1, 8), not_6_7 = skip(2, 8);
    unsigned long long* const row = part.row(a);
    constexpr int set[] = {3, 1, 4};
    for (int i = 0; i < 3; ++i) heap.p(group, first + set[i], T(5), a.next());
    heap.quiet(group);

    row[0] = static_cast<unsigned long long>(heap.wait_until_any(group, all, equal, T(5), only_4));
    heap.wait_until_all(group, all, equal, T(5), only_1_3_4);
    row[1] = static_cast<unsigned long long>(heap.wait_until(group, first + 3, Comparison::greater, T(4)));
    auto* const places = a.at<long long>(target_at + part.number * 256);
    auto* const places_int = a.at<int>(target_at + part.number * 256 + 64);
    const auto some = heap.wait_until_some(group, all, Span<long long>(places, 8), equal, T(5), not_6_7);
    const auto tested = heap.test_some(group, all, Span<int>(places_int, 8), equal, T(5), not_6_7);
    row[2] = static_cast<unsigned long long>(some * 16 + tested);
    const Span<T> none(first, 0);
    unsigned long long bits = 0;
    bits |= heap.test_all(group, all, equal, T(5), only_1_3_4) ? 1 : 0;
    bits |= heap.test_all(group, all, equal, T(5), not_6_7) ? 2 : 0;
    bits |= heap.test_all(group, none, equal, T(5)) ? 4 : 0;
    row[3] = bits;
    row[4] = static_cast<unsigned long long>(heap.test_any(group, all, equal, T(5), not_6_7) * 16 +
                                             heap.test_any(group, all, equal, T(9), only_1_3_4));
    row[5] = static_cast<unsigned long long>(heap.wait_until_any(group, none, equal, T(5)) * 16 +
                                             heap.wait_until_some(group, none, Span<int>(places_int, 0), equal, T(5)));
    bits = 0;
    for (int comparison = 0; comparison < 6; ++comparison)
      for (int value = 4; value < 7; ++value)
        bits = bits * 2 + heap.test(group, first + 3, static_cast<Comparison>(comparison), static_cast<T>(value));
    row[6] = bits;

    heap.p(group, first + 6, T(-1), a.next());
    heap.p(group, first + 7, T(7), a.next());
    row[7] = word_of(heap.wait_until(group, first + 6, Comparison::not_equal, T(0)));
    heap.wait_until(group, first + 7, Comparison::greater_equal, T(7));
    heap.quiet(group);
  }
};

/// Covers words of the next rank that only this group updates.
template <class T>
struct Atomics : CaseTraits {
  static constexpr const char* name = "atomics";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 2;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= parts_max) return;
    T* const word = a.at<T>(target_at + part.number * 64);
    T* const out = a.at<T>(target_at + parts_max * 64 + part.number * 512);
    // Each group starts from a value of its own, which no other group has touched.
    T value = detail::load<T>(a.base + source_at + part.number * 8);
    if (a.variant == 0)
      returning(group, part, a, word, out, value);
    else
      collecting(group, a, word, out, value);
    a.heap.quiet(group);
  }

 private:
  template <class Group>
  TRANSHIP_SHARED static void returning(const Group& group, const Part& part, const CaseArgs& a, T* word, T* out,
                                        T value) {
    const HeapView& heap = a.heap;
    const int peer = a.next();
    unsigned long long hash = 0;
    int count = 0;
    const auto keep = [&](T seen) {
      hash = hash * 1000003 + word_of(seen);
      if (group.lane() == 0) out[count] = seen;
      ++count;
    };
    // An operation that returns nothing may be overtaken by a later one, so quiet() comes first.
    const auto keep_after_all = [&] {
      heap.quiet(group);
      keep(heap.fetch(group, word, peer));
    };
    keep(heap.fetch(group, word, peer));
    keep(heap.swap(group, word, value, peer));
    keep(heap.compare_swap(group, word, value, T(77), peer));
    keep(heap.compare_swap(group, word, T(78), value, peer));
    keep(heap.fetch_inc(group, word, peer));
    keep(heap.fetch_add(group, word, value, peer));
    keep(heap.fetch_bit_and(group, word, T(0x5bd1e995), peer));
    keep(heap.fetch_bit_or(group, word, value, peer));
    keep(heap.fetch_bit_xor(group, word, T(0x2545f491), peer));
    heap.inc(group, word, peer);
    keep_after_all();
    heap.add(group, word, value, peer);
    keep_after_all();
    heap.bit_and(group, word, T(0x7feb352d), peer);
    keep_after_all();
    heap.bit_or(group, word, value, peer);
    keep_after_all();
    heap.bit_xor(group, word, T(0x1b873593), peer);
    keep_after_all();
    heap.set(group, word, value, peer);
    keep_after_all();
    heap.inc(group, word, peer);
    part.row(a)[0] = hash;
  }
  template <class Group>
  TRANSHIP_SHARED static void collecting(const Group& group, const CaseArgs& a, T* word, T* out, T value) {
    const HeapView& heap = a.heap;
    const int peer = a.next();
    const auto each = [&](int i) {
      heap.quiet(group);
      return out + i;
    };
    heap.fetch_nbi(group, each(0), word, peer);
    heap.swap_nbi(group, each(1), word, value, peer);
    heap.compare_swap_nbi(group, each(2), word, value, T(77), peer);
    heap.fetch_inc_nbi(group, each(3), word, peer);
    heap.fetch_add_nbi(group, each(4), word, value, peer);
    heap.fetch_bit_and_nbi(group, each(5), word, T(0x5bd1e995), peer);
    heap.fetch_bit_or_nbi(group, each(6), word, value, peer);
    heap.fetch_bit_xor_nbi(group, each(7), word, T(0x2545f491), peer);
  }
};

/// Floats are fetched, set and swapped as bits.
template <class T>
struct RealAtomics : CaseTraits {
  static constexpr const char* name = "atomics";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 1;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= parts_max) return;
    T* const word = a.at<T>(target_at + part.number * 64);
    T* const out = a.at<T>(target_at + parts_max * 64 + part.number * 512);
    const T value = detail::load<T>(a.base + source_at + part.number * 8);
    const T other = detail::load<T>(a.base + source_at + 4096 + part.number * 8);
    unsigned long long* const row = part.row(a);
    row[0] = word_of(a.heap.fetch(group, word, a.next()));
    a.heap.set(group, word, value, a.next());
    a.heap.quiet(group);
    row[1] = word_of(a.heap.swap(group, word, other, a.next()));
    a.heap.fetch_nbi(group, out, word, a.next());
    a.heap.quiet(group);
    a.heap.swap_nbi(group, out + 1, word, value, a.next());
    a.heap.quiet(group);
  }
};

/// Covers words of rank 0 that all groups of all ranks update.
template <class T>
struct SharedAtomics : CaseTraits {
  static constexpr const char* name = "shared atomics";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 1;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    const HeapView& heap = a.heap;
    T* const words = a.at<T>(counters_at);
    const T mine = detail::load<T>(a.base + source_at + part.number * 8);
    const T ticket = heap.fetch_inc(group, words, 0);
    heap.add(group, words + 1, ticket, 0);
    heap.add(group, words + 2, mine, 0);
    heap.bit_or(group, words + 3, T(1) << ((part.number + a.heap.rank) % 31), 0);
    heap.bit_xor(group, words + 4, mine, 0);
    heap.bit_and(group, words + 5, mine, 0);
    T seen = heap.fetch(group, words + 6, 0);
    for (;;) {
      const T was = heap.compare_swap(group, words + 6, seen, static_cast<T>(seen + 1), 0);
      if (was == seen) break;
      seen = was;
    }
    heap.quiet(group);
  }
};

using WaitCases = CaseList<Of<Waits<short>, Scope::warp>, Of<Waits<int>, Scope::thread, Scope::block>,
                           Of<Waits<long long>, Scope::block>, Of<Waits<Byte>, Scope::warp>>;
using AtomicCases =
    CaseList<Of<Atomics<int>, Scope::block>, Of<Atomics<unsigned>, Scope::thread>, Of<Atomics<long long>, Scope::warp>,
             Of<Atomics<unsigned long>, Scope::block>, Of<RealAtomics<float>, Scope::thread, Scope::block>,
             Of<RealAtomics<double>, Scope::warp>, Of<SharedAtomics<int>, Scope::warp>,
             Of<SharedAtomics<unsigned long long>, Scope::thread, Scope::block>>;

}  // namespace tranship::device
