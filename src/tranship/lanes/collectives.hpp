// Detail: Collective calls of kernels, by one lane, a warp or a block of each member of a team, as NVSHMEM has them:
//
//   sum over the team:   reduce(lane.block(), heap, team, target, source, Reduction::sum);
//
// All members make the same calls of a team in the same order, with the same sizes, roots and operations, and all lanes
// of a group with the same arguments. Targets and sources are symmetric, in their natural places, and named by this
// rank's own addresses. When a call returns, all lanes may read the target and write the source. A target is disjoint
// from its source, except that broadcast and reduce may have one array for both.
//
// A call begins with a sync of the team: what lanes have stored before is seen by all members, what they have put to
// others may still be on its way. barrier() completes that. A member that does not come makes the others wait until
// their deadline, or until it is known to have ended; a GPU has no deadlines.
//
// One call of a team runs at a time on a rank. Blocks that run side by side use different teams, which have words of
// their own. On the CPU, two groups in one team are refused; on a GPU the result is undefined.
//
// Members read from each other, in turns that begin at their right neighbours; a reduction moves twice its size. Values
// are combined in the order of members, so every member and every run has the same result to the bit.
#pragma once

#include <tranship/base/reduction.hpp>
#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/word.hpp>
#include <tranship/lanes/lane.hpp>
#include <tranship/lanes/rma.hpp>
#include <tranship/lanes/team_view.hpp>

namespace tranship {

struct float16;
struct bfloat16;

namespace detail {

/// How an element is read and combined (kernels/arithmetic.hpp).
template <class T>
struct NumberOf {};
template <class T>
requires(!is_same<T, bool> && sizeof(T) <= 8 && requires(T a) { a& a; }) struct NumberOf<T> {
  using Type = Integer<T, Word<T>>;
  static constexpr bool has_bits = true;
};
template <>
struct NumberOf<float> {
  using Type = Real<float, unsigned>;
  static constexpr bool has_bits = false;
};
template <>
struct NumberOf<double> {
  using Type = Real<double, unsigned long long>;
  static constexpr bool has_bits = false;
};
template <>
struct NumberOf<float16> {
  using Type = Half<float_of_f16, f16_of_float>;
  static constexpr bool has_bits = false;
};
template <>
struct NumberOf<bfloat16> {
  using Type = Half<float_of_bf16, bf16_of_float>;
  static constexpr bool has_bits = false;
};
template <class T>
concept Reducible = requires {
  typename NumberOf<T>::Type;
};

/// into = into op from, for `count` elements in their natural places.
template <class T, class Element>
TRANSHIP_SHARED inline void combine_elements(long long count, const unsigned char* from, unsigned char* into) {
  for (long long i = 0; i < count; ++i)
    Element::apply(static_cast<const unsigned char*>(__builtin_assume_aligned(from + i * sizeof(T), sizeof(T))),
                   static_cast<unsigned char*>(__builtin_assume_aligned(into + i * sizeof(T), sizeof(T))));
}
template <class W, Reduction op>
struct BitsElement {
  TRANSHIP_SHARED static void apply(const unsigned char* source, unsigned char* target) {
    const W a = load<W>(target), b = load<W>(source);
    store(static_cast<W>(op == Reduction::bit_and ? a & b : op == Reduction::bit_or ? a | b : a ^ b), target);
  }
};
template <class T>
TRANSHIP_SHARED inline void combine_all(Reduction op, long long count, const unsigned char* from, unsigned char* into) {
  using Number = typename NumberOf<T>::Type;
  using Wrapping = typename Number::Wrapping;
  switch (op) {
    case Reduction::sum:
      return combine_elements<T, CombineElement<Wrapping, ElementMap::accumulate>>(count, from, into);
    case Reduction::product:
      return combine_elements<T, CombineElement<Wrapping, ElementMap::multiply>>(count, from, into);
    case Reduction::minimum:
      return combine_elements<T, CombineElement<Number, ElementMap::minimum>>(count, from, into);
    case Reduction::maximum:
      return combine_elements<T, CombineElement<Number, ElementMap::maximum>>(count, from, into);
    case Reduction::bit_and:
    case Reduction::bit_or:
    case Reduction::bit_xor:
      break;
  }
  if constexpr (NumberOf<T>::has_bits) {
    if (op == Reduction::bit_and)
      return combine_elements<T, BitsElement<Word<T>, Reduction::bit_and>>(count, from, into);
    if (op == Reduction::bit_or) return combine_elements<T, BitsElement<Word<T>, Reduction::bit_or>>(count, from, into);
    if (op == Reduction::bit_xor)
      return combine_elements<T, BitsElement<Word<T>, Reduction::bit_xor>>(count, from, into);
  }
  trap();
}
/// Misuse is found before.
template <class T>
TRANSHIP_SHARED constexpr bool can_reduce(Reduction op) {
  return op <= Reduction::maximum || (NumberOf<T>::has_bits && op <= Reduction::bit_xor);
}
template <class T>
TRANSHIP_SHARED inline void copy_elements(long long count, const unsigned char* from, unsigned char* into) {
  for (long long i = 0; i < count; ++i)
    copy_bytes(__builtin_assume_aligned(into + i * sizeof(T), sizeof(T)),
               __builtin_assume_aligned(from + i * sizeof(T), sizeof(T)), sizeof(T));
}

/// One call of a group of lanes to a team.
template <class Group, class Call>
class TeamCall {
 public:
  TRANSHIP_SHARED TeamCall(const Group& group, const HeapView& heap, const TeamView& team, const Call& call,
                           KernelSite where)
      : group_(group), heap_(heap), team_(team), call_(call), where_(where) {
    const HeapTable& heaps = heap.heaps;
    const bool is_here =
        heaps.contains(heaps.offset_of(team.words), TeamView::words_count * sizeof(unsigned long long));
    if (team.count < 1 || team.translate(team.member) != heap.rank || !is_here)
      refuse("this rank is no member of that team, or the team is one of another world");
  }

  [[noreturn]] TRANSHIP_SHARED void refuse(const char* problem) const { group_.refuse(call_, problem); }
  TRANSHIP_SHARED int lane() const { return group_.lane(); }

  /// Refuses what is not symmetric, or not in its place.
  template <class T>
  TRANSHIP_SHARED void check(Span<T> target, Span<const T> source) const {
    check_one("the target lies outside the symmetric heap", target);
    check_one("the source lies outside the symmetric heap", source);
  }
  template <class T>
  TRANSHIP_SHARED void check_apart(Span<T> target, Span<const T> source) const {
    if (target.size > 0 && source.size > 0 && target.data < source.data + source.size &&
        source.data < target.data + target.size)
      refuse("the target overlaps the source");
  }

  /// The lanes begin together, and no other group of this rank is in the team.
  TRANSHIP_SHARED void begin() const {
    group_.enter(call_);
    // Lanes that take turns see each other's stores. Lanes that run side by side would need an atomic for it.
    if constexpr (!Group::runs_side_by_side) {
      if (lane() == 0 && team_.words[busy]) refuse("another group of lanes of this rank is in a call of this team");
      if (lane() == 0) team_.words[busy] = 1;
    }
  }
  TRANSHIP_SHARED void end() const {
    if constexpr (!Group::runs_side_by_side)
      if (lane() == 0) team_.words[busy] = 0;
  }

  /// Completes what the lanes have put, as quiet() does.
  TRANSHIP_SHARED void complete() const {
    heap_.order(group_, call_, [&](const auto& m) { m.quiet(where_); });
  }

  /// All lanes of the groups of all members have come.
  ///
  /// Dissemination (Hensgen, Finkel, Manber 1988): in round k a member tells the one 2^k behind it, then waits for the
  /// one 2^k before it, so after ceil(log2 n) rounds each has heard of all. Words count meetings and only grow: a
  /// member that is already in the next meeting can raise a word once more, which says nothing wrong to those who still
  /// wait for less. To a reachable member the count itself is stored: one member writes each word, and its stores come
  /// in order. What is carried may come in any order, so there each meeting adds 1.
  ///
  /// Order: lane 0 stores after all lanes have entered. Its stores release on the host and follow a fence on a device;
  /// its waits acquire. So the chain of rounds makes a member's earlier stores visible to the other members, and the
  /// last sync of the group makes them visible to all lanes.
  TRANSHIP_SHARED void meet() const {
    group_.enter(call_);
    if (lane() == 0) {
      const unsigned long long meeting = ++team_.words[0];
      for (int round = 0; (1ll << round) < team_.count; ++round) {
        unsigned long long* word = team_.words + (1ll + round) * TeamView::words_per_line;
        raise(word, meeting, member_at(1ll << round));
        heap_.await(group_, call_, word, Comparison::greater_equal, meeting, member_at(-(1ll << round)));
      }
    }
    group_.leave(call_);
  }

  /// Copies `source` of a member into `target`, by all lanes.
  template <class T>
  TRANSHIP_SHARED void fetch(Span<T> target, Span<const T> source, int member) const {
    fetch_by(group_.lane(), group_.lanes(), target, source, member);
  }
  /// Copies source_of(m) of each member m into target_of(m). Lanes that run side by side read from all members at once,
  /// because one member after the other would each cost the latency of memory. Other lanes read from one member after
  /// the other, from the right neighbour on, so that the members do not all read from one member at a time.
  template <class Target, class Source>
  TRANSHIP_SHARED void fetch_all(const Target& target_of, const Source& source_of) const {
    int parts = 1;
    if (Group::runs_side_by_side && heap_.heaps.is_complete)
      parts = team_.count < group_.lanes() ? team_.count : group_.lanes();
    const int each = group_.lanes() / parts, part = lane() / each;
    if (part >= parts) return;
    for (int i = 1 + part; i <= team_.count; i += parts) {
      const int member = static_cast<int>((static_cast<long long>(team_.member) + i) % team_.count);
      fetch_by(lane() - part * each, each, target_of(member), source_of(member), member);
    }
  }

  /// All lanes combine elements [lower, lower + target.size), each its parts.
  template <class T>
  TRANSHIP_SHARED void combine_together(Reduction op, Span<T> target, Span<const T> source, long long lower) const {
    Room<T> combined;
    for (long long first = lane() * Room<T>::count; first < target.size; first += group_.lanes() * Room<T>::count) {
      const long long left = target.size - first, count = left < Room<T>::count ? left : Room<T>::count;
      combine<T>(op, source.data + lower + first, count, combined);
      write<T>(target.data + first, combined, count);
    }
  }
  /// Each member combines one element for itself, and writes it when all have read theirs.
  template <class T>
  TRANSHIP_SHARED void reduce_one(Reduction op, T* target, const T* source) const {
    Room<T> combined;
    if (lane() == 0) combine<T>(op, source, 1, combined);
    meet();
    if (lane() == 0) write<T>(target, combined, 1);
    group_.leave(call_);
  }

 private:
  template <class T>
  TRANSHIP_SHARED void check_one(const char* problem, Span<T> array) const {
    heap_.at(group_, call_, problem, array.data, HeapView::bytes_of(array.size, sizeof(T)), heap_.rank);
    if (array.size > 0 && reinterpret_cast<unsigned long long>(array.data) % alignof(T) != 0)
      refuse("an array does not lie in its natural place");
  }

  /// Room for as many elements as one lane combines at a time: one where lanes run side by side, for they go through
  /// memory together.
  template <class T>
  struct Room {
    static constexpr long long count = Group::runs_side_by_side ? 1 : 1024 / sizeof(T);
    alignas(16) unsigned char bytes[count * sizeof(T)];
  };

  /// `combined` becomes these elements of all members, in their order.
  template <class T>
  TRANSHIP_SHARED void combine(Reduction op, const T* elements, long long count, Room<T>& combined) const {
    if constexpr (Group::runs_side_by_side) {
      // The lane reads one element of several members before it combines the first, because one read after the other
      // would each cost the latency of memory.
      constexpr int ahead = 8;
      for (int first = 0; first < team_.count; first += ahead) {
        Room<T> read[ahead];
        TRANSHIP_UNROLL
        for (int k = 0; k < ahead; ++k)
          if (first + k < team_.count) read_member(first + k, elements, 1, read[k]);
        for (int k = 0; k < ahead; ++k)
          if (first + k < team_.count) combine_member<T>(op, first + k, 1, read[k].bytes, combined);
      }
    } else {
      Room<T> room;
      for (int member = 0; member < team_.count; ++member)
        combine_member<T>(op, member, count, elements_of(member, elements, count, room), combined);
    }
  }
  template <class T>
  TRANSHIP_SHARED static void combine_member(Reduction op, int member, long long count, const unsigned char* from,
                                             Room<T>& combined) {
    if (member == 0)
      copy_elements<T>(count, from, combined.bytes);
    else
      combine_all<T>(op, count, from, combined.bytes);
  }
  template <class T>
  TRANSHIP_SHARED void read_member(int member, const T* elements, long long count, Room<T>& room) const {
    const int peer = team_.translate(member);
    if (heap_.is_direct(peer))
      copy_elements<T>(count, at(elements, peer), room.bytes);
    else
      heap_.by_message(group_, [&](const auto& m) {
        m.get(Span<T>(reinterpret_cast<T*>(room.bytes), count), Span<const T>(elements, count), peer, where_);
      });
  }
  /// Returns where the lane can read these elements of a member: in its heap, or in `room`, into which it gets them.
  template <class T>
  TRANSHIP_SHARED const unsigned char* elements_of(int member, const T* elements, long long count,
                                                   Room<T>& room) const {
    const int peer = team_.translate(member);
    if (heap_.is_direct(peer)) return at(elements, peer);
    read_member(member, elements, count, room);
    return room.bytes;
  }
  template <class T>
  TRANSHIP_SHARED void write(T* target, const Room<T>& from, long long count) const {
    copy_elements<T>(count, from.bytes, reinterpret_cast<unsigned char*>(target));
    if constexpr (requires { group_.stores(call_, target, sizeof(T)); })
      group_.stores(call_, target, static_cast<unsigned long long>(count) * sizeof(T));
  }

  static constexpr int busy = 1;

  /// Copies lane `lane`'s share, out of `lanes`, of `source` of a member into `target`.
  template <class T>
  TRANSHIP_SHARED void fetch_by(int lane, int lanes, Span<T> target, Span<const T> source, int member) const {
    const int peer = team_.translate(member);
    if (target.size == 0 || (peer == heap_.rank && target.data == source.data)) return;
    if (heap_.is_direct(peer))
      HeapView::copy_by<Group>(lane, lanes, target.data, at(source.data, peer),
                               static_cast<unsigned long long>(target.size) * sizeof(T));
    else if (lane == 0)
      heap_.by_message(group_, [&](const auto& m) { m.get(target, source, peer, where_); });
  }

  /// The rank of the member that is so many behind this one, around the team.
  TRANSHIP_SHARED int member_at(long long distance) const {
    const long long member = (team_.member + distance % team_.count + team_.count) % team_.count;
    return team_.translate(static_cast<int>(member));
  }
  template <class T>
  TRANSHIP_SHARED unsigned char* at(T* local, int peer) const {
    return heap_.heap_of(peer) + heap_.heaps.offset_of(local);
  }
  TRANSHIP_SHARED void raise(unsigned long long* word, unsigned long long meeting, int peer) const {
    if constexpr (Group::runs_side_by_side) system_fence();
    if (heap_.is_direct(peer))
      store_word(reinterpret_cast<unsigned long long*>(at(word, peer)), meeting);
    else
      heap_.by_message(group_, [&](const auto& m) { m.signal(word, 1ull, SignalOp::add, peer, where_); });
  }

  const Group& group_;
  const HeapView& heap_;
  const TeamView& team_;
  const Call& call_;
  KernelSite where_;
};

TRANSHIP_SHARED inline unsigned long long count_of(long long count) {
  return static_cast<unsigned long long>(count);
}
template <class T>
TRANSHIP_SHARED inline auto team_call(const char* name, const TeamView& team, Span<T> target, Span<const T> source,
                                      GroupCall::Argument last, KernelSite where) {
  return [=, words = team.words] {
    return GroupCall{name,
                     where,
                     {{"team", words},
                      {"target", target.data},
                      {"source", source.data},
                      {"target elements", count_of(target.size)},
                      {"source elements", count_of(source.size)},
                      last}};
  };
}

}  // namespace detail

/// Waits for all members. What their lanes stored before, all see after.
template <class Group>
TRANSHIP_SHARED void sync(const Group& group, const HeapView& heap, const TeamView& team,
                          KernelSite where = KernelSite::here()) {
  const auto call = [&] { return GroupCall{"sync", where, {{"team", team.words}}}; };
  const detail::TeamCall all(group, heap, team, call, where);
  all.begin();
  all.meet();
  all.end();
}
/// The same, and what they put before, too.
template <class Group>
TRANSHIP_SHARED void barrier(const Group& group, const HeapView& heap, const TeamView& team,
                             KernelSite where = KernelSite::here()) {
  const auto call = [&] { return GroupCall{"barrier", where, {{"team", team.words}}}; };
  const detail::TeamCall all(group, heap, team, call, where);
  all.begin();
  all.complete();
  all.meet();
  all.end();
}

/// Copies the source of member `root` to the targets of all members, its own included. The target has room for it.
template <class Group, class T>
TRANSHIP_SHARED void broadcast(const Group& group, const HeapView& heap, const TeamView& team, Span<T> target,
                               detail::Same<Span<const T>> source, int root, KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("broadcast", team, target, source, {"root", detail::count_of(root)}, where);
  const detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  if (root < 0 || root >= team.count) all.refuse("there is no such member");
  if (target.size < source.size) all.refuse("the target has fewer elements than the source");
  if (target.data != source.data) all.check_apart(target, source);
  all.begin();
  all.meet();
  all.fetch(Span<T>(target.data, source.size), source, root);
  all.meet();
  all.end();
}

/// All gather: the source of member m becomes elements [m * count, (m + 1) * count) of each target, where `count` is
/// the size of a source. The target has room for all.
template <class Group, class T>
TRANSHIP_SHARED void fcollect(const Group& group, const HeapView& heap, const TeamView& team, Span<T> target,
                              detail::Same<Span<const T>> source, KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("fcollect", team, target, source, {}, where);
  const detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  const long long count = source.size;
  if (target.size / team.count < count) all.refuse("the target has fewer elements than the sources of all members");
  all.check_apart(target, source);
  all.begin();
  all.meet();
  all.fetch_all([&](int m) { return Span<T>(target.data + m * count, count); }, [&](int) { return source; });
  all.meet();
  all.end();
}

/// Block m of each source becomes block `this member` of the target of member m. A source has a block for each member,
/// and a target as many elements.
template <class Group, class T>
TRANSHIP_SHARED void alltoall(const Group& group, const HeapView& heap, const TeamView& team, Span<T> target,
                              detail::Same<Span<const T>> source, KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("alltoall", team, target, source, {}, where);
  const detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  const long long count = source.size / team.count;
  if (source.size % team.count != 0) all.refuse("the source does not have a block of equal size for each member");
  if (target.size < source.size) all.refuse("the target has fewer elements than the source");
  all.check_apart(target, source);
  all.begin();
  all.meet();
  const Span<const T> mine(source.data + team.member * count, count);
  all.fetch_all([&](int m) { return Span<T>(target.data + m * count, count); }, [&](int) { return mine; });
  all.meet();
  all.end();
}

/// Element i of each target becomes the combination of elements i of all sources; what others call an allreduce. The
/// target has room for all of them, and may be the source.
template <class Group, class T>
requires detail::Reducible<T> TRANSHIP_SHARED void reduce(const Group& group, const HeapView& heap,
                                                          const TeamView& team, Span<T> target,
                                                          detail::Same<Span<const T>> source, Reduction op,
                                                          KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("reduce", team, target, source, {"op", detail::count_of(int(op))}, where);
  const detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  if (!detail::can_reduce<T>(op)) all.refuse("these elements have no such operation");
  const long long count = source.size;
  if (target.size < count) all.refuse("the target has fewer elements than the source");
  if (target.data != source.data) all.check_apart(target, source);
  all.begin();
  all.meet();
  if (count == 1) {
    all.reduce_one(op, target.data, source.data);
  } else {
    // Each member combines its slice, which no other one reads from the sources; so the target may be the source. Then
    // all read the slices of others.
    const long long each = count / team.count, more = count % team.count;
    const auto slice = [&](int m) {
      return Span<T>(target.data + m * each + (m < more ? m : more), each + (m < more ? 1 : 0));
    };
    const Span<T> mine = slice(team.member);
    all.combine_together(op, mine, source, mine.data - target.data);
    all.meet();
    all.fetch_all(slice, [&](int m) { return Span<const T>(slice(m)); });
    all.meet();
  }
  all.end();
}

/// The same of blocks: the target becomes the combination of block `this member` of all sources. A source has a block
/// for each member.
template <class Group, class T>
requires detail::Reducible<T> TRANSHIP_SHARED void reducescatter(const Group& group, const HeapView& heap,
                                                                 const TeamView& team, Span<T> target,
                                                                 detail::Same<Span<const T>> source, Reduction op,
                                                                 KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("reducescatter", team, target, source, {"op", detail::count_of(int(op))}, where);
  const detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  if (!detail::can_reduce<T>(op)) all.refuse("these elements have no such operation");
  const long long count = source.size / team.count;
  if (source.size % team.count != 0) all.refuse("the source does not have a block of equal size for each member");
  if (target.size < count) all.refuse("the target has fewer elements than a block of the source");
  all.check_apart(target, source);
  all.begin();
  all.meet();
  all.combine_together(op, Span<T>(target.data, count), source, team.member * count);
  all.meet();
  all.end();
}

}  // namespace tranship
