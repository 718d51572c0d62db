// These cases of device_lanes cover collectives: one group of each member calls them, in teams of all kinds. Calls
// follow each other without a pause, each in its own memory, except where old values are to show. Next: runs.hpp.
#pragma once

#include <tranship/base/element_type.hpp>

#include "lanes/arena.hpp"

namespace tranship::device {

/// Lists the counts of elements of consecutive calls.
struct Counts {
  static constexpr int number = 4;
  TRANSHIP_SHARED static int of(int i) {
    constexpr int counts[number] = {300, 0, 1, 7};
    return counts[i];
  }
};

template <class T>
struct Moves : CaseTraits {
  static constexpr const char* name = "collective moves";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = 4;
  static constexpr bool uses_team = true;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (!part.is_chosen || !a.is_member) return;
    T* source = a.at<T>(source_at);
    T* target = a.at<T>(target_at);
    const int n = a.team.count;
    for (int i = 0; i < Counts::number; ++i) {
      const long long count = Counts::of(i), all = count * n;
      const Span<const T> from(source, count);
      if (a.variant == 0) broadcast(group, a.heap, a.team, Span<T>(target, count + 1), from, i % n);
      if (a.variant == 1) broadcast(group, a.heap, a.team, Span<T>(target, count), Span<const T>(target, count), n - 1);
      if (a.variant == 2) fcollect(group, a.heap, a.team, Span<T>(target, all + 1), from);
      if (a.variant == 3) alltoall(group, a.heap, a.team, Span<T>(target, all), Span<const T>(source, all));
      source += all + 1;
      target += all + 2;
    }
  }
};

/// Tests that what lanes store before a sync, or put before a barrier, is seen after it; every round uses the same
/// place.
struct Meetings : CaseTraits {
  static constexpr const char* name = "sync and barrier";
  static constexpr const char* type = "u32";
  static constexpr int variants = 2;
  static constexpr bool uses_team = true;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (!part.is_chosen || !a.is_member) return;
    constexpr long long count = 1000;
    const int n = a.team.count;
    const int right = a.team.translate((a.team.member + 1) % n);
    const Span<unsigned> source(a.at<unsigned>(source_at), count), target(a.at<unsigned>(target_at), count);
    const long long lane = group.lane(), lanes = group.lanes();
    unsigned sum = 0;
    for (int round = 0; round < a.rounds / 4; ++round) {
      for (long long i = lane; i < count; i += lanes)
        source[i] = (source[i] + static_cast<unsigned>(i)) * 2654435761u + static_cast<unsigned>(round);
      if (a.variant == 0) {
        sync(group, a.heap, a.team);
        a.heap.get(group, target, Span<const unsigned>(source), right);
      } else {
        a.heap.put_nbi(group, target, Span<const unsigned>(source), right);
        barrier(group, a.heap, a.team);
      }
      // Each lane reads elements that another lane has copied.
      for (long long i = lane; i < count; i += lanes) sum = sum * 31 + target[count - 1 - i];
      sync(group, a.heap, a.team);
    }
    part.row(a)[0] = sum;
  }
};

/// Covers all operations of a type, one a variant: reduce, reduce in place, reducescatter.
template <class T>
struct Reductions : CaseTraits {
  static constexpr const char* name = "reductions";
  static constexpr const char* type = NameOf<T>::value;
  static constexpr int variants = detail::NumberOf<T>::has_bits ? 7 : 4;
  static constexpr bool uses_team = true;

  template <class Group>
  TRANSHIP_SHARED static void run(const Group& group, const Part& part, const CaseArgs& a) {
    if (!part.is_chosen || !a.is_member) return;
    const auto op = static_cast<Reduction>(a.variant);
    T* source = a.at<T>(source_at);
    T* target = a.at<T>(target_at);
    for (int i = 0; i < Counts::number; ++i) {
      const long long count = Counts::of(i), all = count * a.team.count;
      for (int in_place = 0; in_place < 2; ++in_place) {
        reduce(group, a.heap, a.team, Span<T>(target, count), Span<const T>(in_place ? target : source, count), op);
        target += count + 1;
      }
      reducescatter(group, a.heap, a.team, Span<T>(target, count), Span<const T>(source, all), op);
      source += all + 1;
      target += count + 1;
    }
  }
};

using MoveCases = CaseList<Of<Moves<Byte>, Scope::block>, Of<Moves<int>, Scope::thread, Scope::warp, Scope::block>,
                           Of<Moves<Odd>, Scope::warp>, Of<Moves<Wide>, Scope::block>,
                           Of<Meetings, Scope::thread, Scope::warp, Scope::block>>;
using ReductionCases = CaseList<Of<Reductions<signed char>, Scope::block>, Of<Reductions<unsigned char>, Scope::warp>,
                                Of<Reductions<short>, Scope::thread>, Of<Reductions<unsigned short>, Scope::block>,
                                Of<Reductions<int>, Scope::block>, Of<Reductions<unsigned>, Scope::warp>>;
using WideReductionCases =
    CaseList<Of<Reductions<long long>, Scope::warp>, Of<Reductions<unsigned long long>, Scope::block>,
             Of<Reductions<float>, Scope::thread, Scope::warp, Scope::block>, Of<Reductions<double>, Scope::block>,
             Of<Reductions<float16>, Scope::block>, Of<Reductions<bfloat16>, Scope::warp>>;

}  // namespace tranship::device
