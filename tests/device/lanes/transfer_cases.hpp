// These cases of device_lanes cover contiguous transfers, single elements, signals and rings. Each target element has
// one writer, and what is read after a signal is written before it, so the bytes after a run do not depend on time.
// Next: wait_cases.hpp.
#pragma once

#include "lanes/arena.hpp"

namespace tranship::device {

/// Covers put, put_nbi, get and get_nbi of many lengths, between places of different alignment.
template <class T>
struct Transfers : CaseTraits {
  static constexpr const char* name = "put and get";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 4;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= parts_max) return;
    constexpr int skew_max = 7;
    constexpr int lengths_count = 8;
    const int lengths[lengths_count] = {4097, 0, 1, 3, 31, 64, 2, 129};
    const long long room = region_bytes / part.count_at_most(parts_max) / static_cast<long long>(sizeof(T));
    T* const source = a.at<T>(source_at) + part.number * room;
    T* const target = a.at<T>(target_at) + part.number * room;
    long long at = 0;
    for (int i = 0; i < lengths_count; ++i) {
      const long long left = room - at - skew_max;
      if (left <= 0) break;
      const long long length = lengths[i] < left ? lengths[i] : left / 2;
      const Span<T> to(target + at + i * 3 % skew_max, length);
      // The sizes differ, and the smaller one counts.
      const Span<const T> from(source + at + i % 5, length + i % 2);
      if (a.variant == 0) a.heap.put(group, to, from, a.next());
      if (a.variant == 1) a.heap.put_nbi(group, to, from, a.next());
      if (a.variant == 2) a.heap.get(group, to, from, a.previous());
      if (a.variant == 3) a.heap.get_nbi(group, to, from, a.previous());
      at += length + skew_max;
    }
    a.heap.quiet(group);
  }
};

/// Covers p and g, in their natural places and in others.
template <class T>
struct Elements : CaseTraits {
  static constexpr const char* name = "p and g";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 2;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= parts_max) return;
    for (int i = 0; i < row_words; ++i) {
      const long long slot = (part.number * row_words + i) * 32 + (i % 2 ? i : 0);
      if (a.variant == 0)
        a.heap.p(group, a.at<T>(target_at + slot), detail::load<T>(a.base + source_at + slot), a.next());
      else
        // All lanes have the value.
        detail::store(a.heap.g(group, a.at<const T>(source_at + slot), a.previous()), part.row(a) + i);
    }
    a.heap.quiet(group);
  }
};

/// Sends data and a signal after it, in one call or in several; a group that waits for the signal reads the data.
struct Signals : CaseTraits {
  static constexpr const char* name = "signals";
  static constexpr const char* type = "i32";
  static constexpr int variants = 6;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (part.number >= parts_max) return;
    constexpr int rounds = 6;
    const long long each = region_bytes / part.count_at_most(parts_max) / rounds / 4;
    int* const source = a.at<int>(source_at) + part.number * rounds * each;
    int* const target = a.at<int>(target_at) + part.number * rounds * each;
    auto* const signal = a.at<unsigned long long>(signals_at) + part.number * 8;
    const SignalOp op = a.variant % 2 ? SignalOp::add : SignalOp::set;
    for (int round = 0; round < rounds; ++round) {
      const Span<int> to(target + round * each + round % 2, each - 3);
      const Span<const int> from(source + round * each + round % 3, each - 3);
      const unsigned long long value = op == SignalOp::add ? 1 : round + 1;
      if (a.variant < 2) {
        a.heap.put_signal(group, to, from, signal, value, op, a.next());
      } else if (a.variant < 4) {
        a.heap.put_signal_nbi(group, to, from, signal, value, op, a.next());
      } else {
        a.heap.put_nbi(group, to, from, a.next());
        a.heap.fence(group);
        a.heap.signal(group, signal, value, op, a.next());
      }
      a.heap.signal_wait(group, signal, Comparison::greater_equal, round + 1);
      unsigned sum = 0;
      for (long long i = group.lane(); i < to.size; i += group.lanes()) sum = sum * 31 + static_cast<unsigned>(to[i]);
      part.row(a)[round] = sum;
      // Without the fence the signal of the next round may come first.
      a.heap.fence(group);
    }
    part.row(a)[rounds] = a.heap.signal_fetch(group, signal);
    a.heap.quiet(group);
  }
};

/// One group of each rank passes a token on, bare or with 4 KiB that each rank changes. Data arrives in the same place
/// in every round, which exposes a reader that still sees old data.
struct Ring : CaseTraits {
  static constexpr const char* name = "ring";
  static constexpr const char* type = "u32";
  static constexpr int variants = 2;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (!part.is_chosen) return;
    const long long count = a.variant == 0 ? 0 : 1024;
    auto* const source = a.at<unsigned>(source_at);
    auto* const target = a.at<unsigned>(target_at);
    auto* const signal = a.at<long long>(signals_at);
    const int rank = a.heap.rank;
    unsigned sum = 0;
    for (int lap = 0; lap < a.rounds; ++lap) {
      const long long told = rank == 0 ? lap : lap + 1;
      if (told > 0) a.heap.signal_wait(group, signal, Comparison::equal, told);
      for (long long i = group.lane(); i < count; i += group.lanes()) {
        const unsigned value = target[i];
        sum = sum * 31 + value;
        source[i] = value * 1664525u + 1013904223u + static_cast<unsigned>(rank);
      }
      a.heap.put_signal(group, Span<unsigned>(target, count), Span<const unsigned>(source, count), signal, lap + 1,
                        SignalOp::set, a.next());
    }
    part.row(a)[0] = sum;
    a.heap.quiet(group);
  }
};

using TransferCases = CaseList<Of<Transfers<Byte>, Scope::warp, Scope::block>, Of<Transfers<short>, Scope::thread>,
                               Of<Transfers<int>, Scope::block>, Of<Transfers<double>, Scope::warp>,
                               Of<Transfers<Wide>, Scope::block>, Of<Transfers<Odd>, Scope::thread, Scope::block>>;
using SignalCases =
    CaseList<Of<Elements<Byte>, Scope::thread>, Of<Elements<short>, Scope::warp>, Of<Elements<float>, Scope::block>,
             Of<Elements<double>, Scope::thread, Scope::warp, Scope::block>,
             Of<Signals, Scope::thread, Scope::warp, Scope::block>, Of<Ring, Scope::thread, Scope::warp, Scope::block>>;

}  // namespace tranship::device
