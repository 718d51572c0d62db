// Detail: Collective calls of kernels, made by one lane, a warp or a block of each member of a team, as in NVSHMEM:
//
//   sum over the team:   reduce(lane.block(), heap, team, target, source, Reduction::sum);
//
// All members make the same calls of a team in the same order, with the same sizes, roots and operations; all lanes of
// a group pass the same arguments. Targets and sources are symmetric, aligned, and named by this rank's own addresses.
// When a call returns, all lanes may read the target and write the source. A target must not overlap its source, except
// that broadcast and reduce accept one array for both.
//
// A call begins with a sync of the team: all members see what lanes have stored before it, but puts to other ranks may
// still be in flight. barrier() completes them. If a member does not come, the others wait until their deadline passes,
// until the member is known to have ended, or until the guard of their HeapView gives up (wait_guard.hpp).
//
// A rank runs one call of a team at a time. Blocks that run side by side need different teams, which have their own
// words. On the CPU, a second group in a team is refused; on a GPU the result is undefined.
//
// Members read from each other, in turns that begin at their right neighbours; a reduction moves twice its size. On a
// GPU, a member stores its part of a reduction to all others. Values are combined in the order of the members, so every
// member and every run gets the same bits.
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

/// How the elements of a type are read and combined (kernels/arithmetic.hpp).
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

/// A number of elements known at compile time, so that the elements stay in registers.
template <int n>
struct Fixed {
  TRANSHIP_SHARED constexpr operator long long() const { return n; }
};

/// Computes into = into op from, for `count` aligned elements.
template <class T, class Element, class Count>
TRANSHIP_SHARED inline void combine_elements(Count count, const unsigned char* from, unsigned char* into) {
  TRANSHIP_UNROLL
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
/// Calls `f(element)` with the element that applies a reduction.
template <class T, class F>
TRANSHIP_SHARED inline void with_reduction(Reduction op, const F& f) {
  using Number = typename NumberOf<T>::Type;
  using Wrapping = typename Number::Wrapping;
  switch (op) {
    case Reduction::sum:
      return f(CombineElement<Wrapping, ElementMap::accumulate>{});
    case Reduction::product:
      return f(CombineElement<Wrapping, ElementMap::multiply>{});
    case Reduction::minimum:
      return f(CombineElement<Number, ElementMap::minimum>{});
    case Reduction::maximum:
      return f(CombineElement<Number, ElementMap::maximum>{});
    case Reduction::bit_and:
    case Reduction::bit_or:
    case Reduction::bit_xor:
      break;
  }
  if constexpr (NumberOf<T>::has_bits) {
    if (op == Reduction::bit_and) return f(BitsElement<Word<T>, Reduction::bit_and>{});
    if (op == Reduction::bit_or) return f(BitsElement<Word<T>, Reduction::bit_or>{});
    if (op == Reduction::bit_xor) return f(BitsElement<Word<T>, Reduction::bit_xor>{});
  }
  trap();
}
/// Returns true if T has the reduction. Calls check this before anything else happens.
template <class T>
TRANSHIP_SHARED constexpr bool can_reduce(Reduction op) {
  return op <= Reduction::maximum || (NumberOf<T>::has_bits && op <= Reduction::bit_xor);
}
template <class T, class Count>
TRANSHIP_SHARED inline void copy_elements(Count count, const unsigned char* from, unsigned char* into) {
  TRANSHIP_UNROLL
  for (long long i = 0; i < count; ++i)
    copy_bytes(__builtin_assume_aligned(into + i * sizeof(T), sizeof(T)),
               __builtin_assume_aligned(from + i * sizeof(T), sizeof(T)), sizeof(T));
}

/// Returns how many of `count` things each member gets. A device divides 64-bit numbers five times as slowly as 32-bit
/// ones.
TRANSHIP_SHARED inline long long each_of(long long count, const TeamView& team) {
  if (count >> 31) return count / team.count;
  return static_cast<unsigned>(count) / static_cast<unsigned>(team.count);
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

  /// Refuses arrays that are not symmetric or not aligned.
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

  /// Waits until all lanes have come, and checks that no other group of this rank is in a call of the team.
  TRANSHIP_SHARED void begin() {
    group_.enter(call_);
    // Lanes that take turns see each other's stores. Lanes that run side by side would need an atomic here.
    if constexpr (!Group::runs_side_by_side) {
      if (lane() == 0 && team_.words[busy]) refuse("another group of lanes of this rank is in a call of this team");
      if (lane() == 0) team_.words[busy] = 1;
    }
    meeting_ = team_.words[0];
  }
  TRANSHIP_SHARED void end() const {
    if (lane() != 0) return;
    team_.words[0] = meeting_;
    if constexpr (!Group::runs_side_by_side) team_.words[busy] = 0;
  }

  /// Completes the puts of the lanes, as quiet() does. It does nothing if the next meeting itself makes all earlier
  /// accesses visible.
  TRANSHIP_SHARED void complete() const {
    if (Group::runs_side_by_side && heap_.heaps.is_complete) return;
    heap_.order(
        group_, call_, [&] { full_fence(heap_.reach()); }, [&](const auto& m) { m.quiet(where_); });
  }

  /// Returns when all lanes of the groups of all members have come. Words count meetings and only grow: a member that
  /// is already in the next meeting may raise a word once more, and members that still wait for a smaller count are not
  /// misled.
  ///
  /// Order: lanes raise words after all lanes have entered. Their stores release on the host and follow a fence on a
  /// device; their waits acquire. The last sync of the group makes what one lane has acquired visible to all. So a
  /// member's earlier stores are visible to all members.
  TRANSHIP_SHARED void meet() {
    group_.enter(call_);
    ++meeting_;
    if (meets_directly())
      meet_directly();
    else if (lane() == 0)
      meet_in_rounds();
    group_.leave(call_);
  }

  /// Copies `source` of a member into `target`, by all lanes.
  template <class T>
  TRANSHIP_SHARED void fetch(Span<T> target, Span<const T> source, int member) const {
    fetch_by(group_.lane(), group_.lanes(), target, source, member);
  }
  /// Copies source_of(m) of each member m into target_of(m). Lanes that run side by side read from all members at once,
  /// because reading from one after the other would cost the latency of memory each time. Other lanes read from one
  /// member after the other, beginning at the right neighbour, so that the members do not all read from one member at
  /// once.
  template <class Target, class Source>
  TRANSHIP_SHARED void fetch_all(const Target& target_of, const Source& source_of) const {
    int parts = 1;
    if (Group::runs_side_by_side && heap_.heaps.is_complete)
      parts = team_.count < group_.lanes() ? team_.count : group_.lanes();
    const int each = group_.lanes() / parts, part = lane() / each;
    if (part >= parts) return;
    for (int i = 1 + part; i <= team_.count; i += parts) {
      const int member = after(i);
      fetch_by(lane() - part * each, each, target_of(member), source_of(member), member);
    }
  }

  /// The slice of `count` elements that a member combines for all. It begins at a multiple of 16 bytes, so that lanes
  /// can load and store words of 16 bytes.
  struct Slice {
    long long lower;
    long long size;
  };
  template <class T>
  TRANSHIP_SHARED Slice slice_of(int member, long long count) const {
    constexpr long long unit = Group::runs_side_by_side ? Wide<T>::count : 1;
    const long long units = (count + unit - 1) / unit;
    const long long each = each_of(units, team_), more = units - each * team_.count;
    const long long lower = (member * each + (member < more ? member : more)) * unit;
    const long long upper = lower + (each + (member < more ? 1 : 0)) * unit;
    return {lower, (upper < count ? upper : count) - lower};
  }

  /// Combines elements [lower, lower + target.size) by all lanes; each lane combines its part.
  template <class T>
  TRANSHIP_SHARED void combine_together(Reduction op, Span<T> target, Span<const T> source, long long lower) const {
    if constexpr (Group::runs_side_by_side)
      if (heap_.heaps.is_complete)
        return combine_side_by_side(op, target, source, lower,
                                    [&](auto some, T* at) { write_part(some, reinterpret_cast<Byte*>(at)); });
    Room<T> combined;
    for (long long first = lane() * Room<T>::count; first < target.size; first += group_.lanes() * Room<T>::count) {
      const long long left = target.size - first, count = left < Room<T>::count ? left : Room<T>::count;
      combine<T>(op, source.data + lower + first, count, combined);
      write<T>(target.data + first, combined, count);
    }
  }
  /// Combines them into the targets of all members. No other lane may access these elements of the targets.
  template <class T>
  TRANSHIP_SHARED void combine_for_all(Reduction op, Span<T> target, Span<const T> source, long long lower) const {
    combine_side_by_side(op, target, source, lower, [&](auto some, T* local) {
      // Four at a time: if members and heaps are in lists, each address costs two loads.
      TRANSHIP_UNROLL_BY(4)
      for (int member = 0; member < team_.count; ++member) write_part(some, at(local, team_.translate(member)));
    });
  }
  /// Each member combines one element for itself, and writes it when all members have read theirs.
  template <class T>
  TRANSHIP_SHARED void reduce_one(Reduction op, T* target, const T* source) {
    Room<T> combined;
    if (lane() == 0) combine<T>(op, source, 1, combined);
    meet();
    if (lane() == 0) write<T>(target, combined, 1);
    group_.leave(call_);
  }

 private:
  using Byte = unsigned char;

  template <class T>
  TRANSHIP_SHARED void check_one(const char* problem, Span<T> array) const {
    heap_.at(group_, call_, problem, array.data, HeapView::bytes_of(array.size, sizeof(T)), heap_.rank);
    if (array.size > 0 && reinterpret_cast<unsigned long long>(array.data) % alignof(T) != 0)
      refuse("an array is not aligned to its elements");
  }

  /// Some elements in registers: as many as fit in 16 bytes, or one.
  template <class T, int elements>
  struct Part {
    static constexpr int count = elements;
    static constexpr int bytes_count = elements * static_cast<int>(sizeof(T));
    CopiedWord<bytes_count> word;
  };
  template <class T>
  using Wide = Part<T, 16 / static_cast<int>(sizeof(T))>;
  template <class P>
  TRANSHIP_SHARED static P read_part(const Byte* from) {
    return {load_copied<P::bytes_count>(from)};
  }
  template <class P>
  TRANSHIP_SHARED static void write_part(P part, Byte* to) {
    store_copied<P::bytes_count>(to, part.word);
  }
  template <class T, class Element, class P>
  TRANSHIP_SHARED static P combined_parts(P into, P from) {
    combine_elements<T, Element>(Fixed<P::count>(), reinterpret_cast<const Byte*>(&from.word),
                                 reinterpret_cast<Byte*>(&into.word));
    return into;
  }

  /// Lanes combine words of 16 bytes if the elements are aligned to 16 bytes in source and target, and single elements
  /// elsewhere. write(part, at) receives the combination for address `at` in `target`.
  template <class T, class Write>
  TRANSHIP_SHARED void combine_side_by_side(Reduction op, Span<T> target, Span<const T> source, long long lower,
                                            const Write& write) const {
    const T* const from = source.data + lower;
    const auto places = reinterpret_cast<unsigned long long>(from) | reinterpret_cast<unsigned long long>(target.data);
    const long long words = places % 16 == 0 ? target.size / Wide<T>::count : 0, rest = words * Wide<T>::count;
    with_reduction<T>(op, [&](auto element) {
      using Element = decltype(element);
      combine_parts<Wide<T>, T, Element>(words, from, target.data, write);
      combine_parts<Part<T, 1>, T, Element>(target.size - rest, from + rest, target.data + rest, write);
    });
  }
  /// A lane reads a part of several members before it combines the first; reading them one after the other would cost
  /// the latency of memory each time.
  template <class P, class T, class Element, class Write>
  TRANSHIP_SHARED void combine_parts(long long parts, const T* source, T* target, const Write& write) const {
    constexpr int ahead = 8;
    for (long long i = lane(); i < parts; i += group_.lanes()) {
      P combined{};
      for (int first = 0; first < team_.count; first += ahead) {
        P read[ahead];
        TRANSHIP_UNROLL
        for (int k = 0; k < ahead; ++k)
          if (first + k < team_.count) read[k] = read_part<P>(at(source + i * P::count, team_.translate(first + k)));
        TRANSHIP_UNROLL
        for (int k = 0; k < ahead; ++k) {
          if (k == 0 && first == 0)
            combined = read[0];
          else if (first + k < team_.count)
            combined = combined_parts<T, Element>(combined, read[k]);
        }
      }
      write(combined, target + i * P::count);
    }
  }

  /// Room for the elements that one lane combines at a time, when each lane combines alone.
  template <class T>
  struct Room {
    static constexpr long long count = Group::runs_side_by_side ? 1 : 1024 / sizeof(T);
    alignas(16) Byte bytes[count * sizeof(T)];
  };

  /// Combines these elements of all members, in their order, into `combined`.
  template <class T>
  TRANSHIP_SHARED void combine(Reduction op, const T* elements, long long count, Room<T>& combined) const {
    Room<T> room;
    for (int member = 0; member < team_.count; ++member) {
      const Byte* const from = elements_of(member, elements, count, room);
      if (member == 0)
        copy_elements<T>(count, from, combined.bytes);
      else
        with_reduction<T>(op,
                          [&](auto element) { combine_elements<T, decltype(element)>(count, from, combined.bytes); });
    }
  }
  /// Returns where the lane can read these elements of a member: in its heap, or in `room`, into which they are copied.
  template <class T>
  TRANSHIP_SHARED const Byte* elements_of(int member, const T* elements, long long count, Room<T>& room) const {
    const int peer = team_.translate(member);
    if (heap_.is_direct(peer)) return at(elements, peer);
    heap_.by_message(group_, [&](const auto& m) {
      m.get(Span<T>(reinterpret_cast<T*>(room.bytes), count), Span<const T>(elements, count), peer, where_);
    });
    return room.bytes;
  }
  template <class T>
  TRANSHIP_SHARED void write(T* target, const Room<T>& from, long long count) const {
    copy_elements<T>(count, from.bytes, reinterpret_cast<Byte*>(target));
    if constexpr (requires { group_.stores(call_, target, sizeof(T)); })
      group_.stores(call_, target, static_cast<unsigned long long>(count) * sizeof(T));
  }

  static constexpr int busy = 1;

  /// Copies lane `lane`'s share, out of `lanes`, of a member's `source` into `target`.
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

  /// On a device, a few members that reach each other notify all others at once and wait for all of them: one hop
  /// instead of one per round. Lanes share the members among themselves.
  TRANSHIP_SHARED bool meets_directly() const {
    return Group::runs_side_by_side && heap_.heaps.is_complete && team_.count <= TeamView::rounds_max;
  }
  TRANSHIP_SHARED void meet_directly() const {
    const int lanes = group_.lanes();
    if (1 + lane() >= team_.count) return;
    word_fence(heap_.reach());
    unsigned long long* const mine = word_of(team_.member);
    for (int i = 1 + lane(); i < team_.count; i += lanes)
      store_word(reinterpret_cast<unsigned long long*>(at(mine, team_.translate(after(i)))), meeting_);
    for (int i = 1 + lane(); i < team_.count; i += lanes) await(word_of(after(i)), after(i));
  }
  /// Dissemination (Hensgen, Finkel, Manber 1988): in round k a member notifies the member 2^k after it and waits for
  /// the member 2^k before it, so after ceil(log2 n) rounds each has heard of all. For a reachable member the count
  /// itself is stored, since one member writes each word and its stores arrive in order. Messages may arrive in any
  /// order, so there each meeting adds 1.
  TRANSHIP_SHARED void meet_in_rounds() const {
    for (int round = 0; (1ll << round) < team_.count; ++round) {
      const int distance = 1 << round;
      raise(word_of(round), team_.translate(after(distance)));
      await(word_of(round), after(team_.count - distance));
    }
  }
  /// Returns the first word of a line of this rank: the line of a member that meets directly, or of a round.
  TRANSHIP_SHARED unsigned long long* word_of(int line) const {
    return team_.words + (1ll + line) * TeamView::words_per_line;
  }
  /// Waits for a word of this rank that a member raises.
  TRANSHIP_SHARED void await(const unsigned long long* word, int member) const {
    heap_.await(group_, call_, word, Comparison::greater_equal, meeting_, team_.translate(member));
  }
  /// Returns the member `distance` places after this one, around the team; `distance` is at most the number of members.
  TRANSHIP_SHARED int after(int distance) const {
    const int left = team_.count - team_.member;
    return distance < left ? team_.member + distance : distance - left;
  }
  template <class T>
  TRANSHIP_SHARED unsigned char* at(T* local, int peer) const {
    return heap_.heap_of(peer) + heap_.heaps.offset_of(local);
  }
  TRANSHIP_SHARED void raise(unsigned long long* word, int peer) const {
    if constexpr (Group::runs_side_by_side) word_fence(heap_.reach());
    if (heap_.is_direct(peer))
      store_word(reinterpret_cast<unsigned long long*>(at(word, peer)), meeting_);
    else
      heap_.by_message(group_, [&](const auto& m) { m.signal(word, 1ull, SignalOp::add, peer, where_); });
  }

  const Group& group_;
  const HeapView& heap_;
  const TeamView& team_;
  const Call& call_;
  KernelSite where_;
  unsigned long long meeting_ = 0;  ///< number of the last meeting, in all lanes; begin() reads it, end() stores it
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

/// Waits for all members. Afterwards all of them see what the lanes of all have stored before.
template <class Group>
TRANSHIP_SHARED void sync(const Group& group, const HeapView& heap, const TeamView& team,
                          KernelSite where = KernelSite::here()) {
  const auto call = [&] { return GroupCall{"sync", where, {{"team", team.words}}}; };
  detail::TeamCall all(group, heap, team, call, where);
  all.begin();
  all.meet();
  all.end();
}
/// Does what sync() does, and also completes everything that the lanes of all members have put before.
template <class Group>
TRANSHIP_SHARED void barrier(const Group& group, const HeapView& heap, const TeamView& team,
                             KernelSite where = KernelSite::here()) {
  const auto call = [&] { return GroupCall{"barrier", where, {{"team", team.words}}}; };
  detail::TeamCall all(group, heap, team, call, where);
  all.begin();
  all.complete();
  all.meet();
  all.end();
}

/// Copies the source of member `root` to the targets of all members, including its own. The target must be at least as
/// large.
template <class Group, class T>
TRANSHIP_SHARED void broadcast(const Group& group, const HeapView& heap, const TeamView& team, Span<T> target,
                               detail::Same<Span<const T>> source, int root, KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("broadcast", team, target, source, {"root", detail::count_of(root)}, where);
  detail::TeamCall all(group, heap, team, call, where);
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
/// the size of a source. The target must hold the sources of all members.
template <class Group, class T>
TRANSHIP_SHARED void fcollect(const Group& group, const HeapView& heap, const TeamView& team, Span<T> target,
                              detail::Same<Span<const T>> source, KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("fcollect", team, target, source, {}, where);
  detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  const long long count = source.size;
  if (detail::each_of(target.size, team) < count)
    all.refuse("the target has fewer elements than the sources of all members");
  all.check_apart(target, source);
  all.begin();
  all.meet();
  all.fetch_all([&](int m) { return Span<T>(target.data + m * count, count); }, [&](int) { return source; });
  all.meet();
  all.end();
}

/// Block m of each source becomes block `this member` of the target of member m. A source has one block per member, and
/// a target at least as many elements.
template <class Group, class T>
TRANSHIP_SHARED void alltoall(const Group& group, const HeapView& heap, const TeamView& team, Span<T> target,
                              detail::Same<Span<const T>> source, KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("alltoall", team, target, source, {}, where);
  detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  const long long count = detail::each_of(source.size, team);
  if (count * team.count != source.size) all.refuse("the source does not have a block of equal size for each member");
  if (target.size < source.size) all.refuse("the target has fewer elements than the source");
  all.check_apart(target, source);
  all.begin();
  all.meet();
  const Span<const T> mine(source.data + team.member * count, count);
  all.fetch_all([&](int m) { return Span<T>(target.data + m * count, count); }, [&](int) { return mine; });
  all.meet();
  all.end();
}

/// All reduce: element i of each target becomes the combination of elements i of all sources. The target must be at
/// least as large as the source, and may be the source.
template <class Group, class T>
requires detail::Reducible<T> TRANSHIP_SHARED void reduce(const Group& group, const HeapView& heap,
                                                          const TeamView& team, Span<T> target,
                                                          detail::Same<Span<const T>> source, Reduction op,
                                                          KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("reduce", team, target, source, {"op", detail::count_of(int(op))}, where);
  detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  if (!detail::can_reduce<T>(op)) all.refuse("these elements have no such operation");
  const long long count = source.size;
  if (target.size < count) all.refuse("the target has fewer elements than the source");
  if (target.data != source.data) all.check_apart(target, source);
  all.begin();
  all.meet();
  // Each member combines its own slice and no member reads another's slice of the sources, so the target may be the
  // source.
  const auto slice = [&](int m) {
    const auto of = all.template slice_of<T>(m, count);
    return Span<T>(target.data + of.lower, of.size);
  };
  const Span<T> mine = slice(team.member);
  if (Group::runs_side_by_side && heap.heaps.is_complete) {
    all.combine_for_all(op, mine, source, mine.data - target.data);
    all.meet();
  } else if (count == 1) {
    all.reduce_one(op, target.data, source.data);
  } else {
    // Afterwards all members read the slices of the others.
    all.combine_together(op, mine, source, mine.data - target.data);
    all.meet();
    all.fetch_all(slice, [&](int m) { return Span<const T>(slice(m)); });
    all.meet();
  }
  all.end();
}

/// Reduces block by block: the target becomes the combination of block `this member` of all sources. A source has one
/// block per member.
template <class Group, class T>
requires detail::Reducible<T> TRANSHIP_SHARED void reducescatter(const Group& group, const HeapView& heap,
                                                                 const TeamView& team, Span<T> target,
                                                                 detail::Same<Span<const T>> source, Reduction op,
                                                                 KernelSite where = KernelSite::here()) {
  const auto call = detail::team_call("reducescatter", team, target, source, {"op", detail::count_of(int(op))}, where);
  detail::TeamCall all(group, heap, team, call, where);
  all.check(target, source);
  if (!detail::can_reduce<T>(op)) all.refuse("these elements have no such operation");
  const long long count = detail::each_of(source.size, team);
  if (count * team.count != source.size) all.refuse("the source does not have a block of equal size for each member");
  if (target.size < count) all.refuse("the target has fewer elements than a block of the source");
  all.check_apart(target, source);
  all.begin();
  all.meet();
  all.combine_together(op, Span<T>(target.data, count), source, team.member * count);
  all.meet();
  all.end();
}

}  // namespace tranship
