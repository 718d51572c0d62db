// Context: one-sided transfers. A rank puts into, gets from and updates the symmetric heaps of its peers, who need not
// do anything; signals, waits and barriers tell them what has come.
//
// What completes when (as OpenSHMEM and NVSHMEM define it):
// - put, p and put_signal return when the source may be used again. At the peer the data is there only after a quiet
//   or a barrier, or when a signal that was put with it has been seen.
// - get, g and atomics that fetch return with the value.
// - Forms with _nbi ("non-blocking, implicit") may return before; until the next quiet the source of a put must not be
//   written, and the target of a get or a fetched value not be used.
// - fence() orders: what was put, or updated without fetching, to one peer before it is there before what is put or
//   updated there after it. It does not order gets or fetches that do not block, and completes nothing.
// - quiet() completes all of this context: puts are at their peers, for all to see; gets and values are here.
// - put_signal orders its own data before its own signal and nothing else. A transfer of nothing still signals.
// Where peers are reachable, all calls complete when they return, _nbi or not; a program that relies on that is wrong
// and fails on the simulated fabric.
//
// When target and source differ in size, the smaller size is moved, as NVSHMEM does it; SizeRule::equal refuses that.
// Misuse (a rank outside the world, memory outside the symmetric heap, a slice of no elements where one is needed)
// throws `invalid_use` before anything happens.
//
// Loops that poll (test, signal_fetch, get, g, and what fetches) end as waits do: these calls throw `peer_lost` soon
// after a rank has failed, and `timeout` when the places that a rank polls have not changed for the world's timeout, in
// which it has made no transfer, no collective call and no wait, in this or another context. Whatever else it does
// between its polls does not count: a rank that computes, and asks now and then whether it should stop, sets a timeout
// that is longer than what it computes, or none. Soon is some ten microseconds, or the second poll where they come
// more rarely; when they suddenly become rare, 1024 polls. A get of more than 64 KiB is no poll, but a transfer. A test
// that is true never throws. A rank that polls in vain gives its core away about as often.
//
// Contexts are used by the thread of their rank. Atomics and signals of one variable are atomic with each other only,
// where all of them take it for an integer, or for a floating-point number, of the same width.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

#include <tranship/base/call_site.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/forked.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/seam/wait_note.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/team.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/lanes/multicast.hpp>

namespace tranship {

namespace detail {
class LaneMessenger;
}

enum class SizeRule : std::uint8_t {
  smaller_wins,  ///< target and source may differ in size
  equal,         ///< they may not
};

enum class HeapChecks : std::uint8_t {
  bounds,  ///< that what is moved lies in the symmetric heap: always
  blocks,  ///< that it lies in one block that this rank has not let go of; some 50 ns a call
};

struct ContextOptions {
  SizeRule sizes = SizeRule::smaller_wins;
  /// `blocks` also where the environment variable TRANSHIP_HEAP_CHECKS says so.
  HeapChecks checks = HeapChecks::bounds;
};

template <class T>
concept SignalWord = std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::int64_t>;
/// What is fetched, set and swapped: 4 or 8 bytes.
template <class T>
concept AtomicElement = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept AtomicInteger = std::is_integral_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
/// What one can wait for.
template <class T>
concept Waitable = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// No call is collective. Only the waits (signal_wait, wait_until and its kin), and quiet and calls that block to peers
/// whose memory is not reachable, wait: until the world's timeout, and then throw `timeout`, or `peer_lost`. Every call
/// throws `invalid_use` for misuse, as the head of this file says. To a reachable peer nothing is allocated: a put or a
/// get is a copy by this thread, and an atomic is one instruction.
class Context {
 public:
  /// Local. A world has a default context (World::context()); others of one rank complete on their own. The world must
  /// outlive it.
  explicit Context(World& world, const ContextOptions& options = {});
  ~Context();  ///< completes what is under way, as quiet() does; not collective
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  World& world() const noexcept { return *world_; }
  /// Whether all transfers of this context, to whichever peer, are complete when their calls return.
  bool completes_at_once() const noexcept { return !transport_; }
  /// Whether those to and from this peer are.
  bool completes_at_once(Rank peer) const noexcept { return is_direct(peer); }
  HeapChecks checks() const noexcept { return checks_; }

  /// What a put needs that is a store of the calling thread, for code that is compiled at run time. The address x of
  /// this rank's memory is `first + stride * peer + (x - own)` at each of `peers` ranks from `first_peer` on, for all
  /// elements within `bytes` from `own`. What lies elsewhere, or goes elsewhere, is put by a call. A store to where
  /// others wait releases. Like a put, it sets `acted`: the rank does more than to poll.
  struct DirectPuts {
    std::uintptr_t own = 0;
    std::size_t bytes = 0;  ///< 0 where each call is to be looked at
    std::byte* first = nullptr;
    std::size_t stride = 0;
    Rank first_peer = 0;
    int peers = 0;
    mutable bool acted = false;  ///< something other than polls, since the last look of this rank
  };
  const DirectPuts& direct_puts() const noexcept { return direct_; }

  // One element.

  /// Puts `value` into the first element of `target` at `peer`.
  template <Transferable T>
  void p(Symmetric<T> target, std::type_identity_t<T> value, Rank peer, CallSite where = CallSite::here()) {
    direct_.acted = true;
    if (std::byte* to = direct(target, peer)) [[likely]]
      return store(to, value);
    check_one("p", target.size(), where);
    if (is_direct(peer))
      return store(checked_word("the target of a put", target.local(), sizeof(T), peer, where), value);
    put_checked(target.local(), &value, {sizeof(T), sizeof(T), 1, 1}, nullptr, Completion::blocking, peer, where);
  }
  /// The first element of `source` at `peer`.
  template <Transferable T>
  std::remove_const_t<T> g(Symmetric<T> source, Rank peer, CallSite where = CallSite::here()) {
    std::remove_const_t<T> value;
    if (const std::byte* from = direct(source, peer)) [[likely]]
      load(from, value);
    else {
      check_one("g", source.size(), where);
      if (is_direct(peer))
        load(checked_word("the source of a get", source.local(), sizeof(T), peer, where), value);
      else
        get_checked(&value, source.local(), {sizeof(T), sizeof(T), 1, 1}, Completion::blocking, peer, where);
    }
    polled("g", source.local(), peer, value, where);
    return value;
  }

  // Contiguous elements.

  template <Transferable T>
  void put(Symmetric<T> target, std::span<const std::type_identity_t<T>> source, Rank peer,
           CallSite where = CallSite::here()) {
    put_span(target, source, Completion::blocking, peer, where);
  }
  template <Transferable T>
  void put_nbi(Symmetric<T> target, std::span<const std::type_identity_t<T>> source, Rank peer,
               CallSite where = CallSite::here()) {
    put_span(target, source, Completion::nonblocking, peer, where);
  }
  template <Transferable T>
  void get(std::span<std::remove_const_t<T>> target, Symmetric<T> source, Rank peer,
           CallSite where = CallSite::here()) {
    get_span(target, source, Completion::blocking, peer, where);
  }
  template <Transferable T>
  void get_nbi(std::span<std::remove_const_t<T>> target, Symmetric<T> source, Rank peer,
               CallSite where = CallSite::here()) {
    get_span(target, source, Completion::nonblocking, peer, where);
  }

  // Boxes. Element (i, j, ...) of one side goes to element (i, j, ...) of the other, however they lie. One of them is
  // in the symmetric heap, given by its local address. Throws `mismatch` when element types or extents differ.

  void put(const StridedView& target, const StridedView& source, Rank peer, CallSite where = CallSite::here()) {
    put_view(target, source, nullptr, Completion::blocking, peer, where);
  }
  void put_nbi(const StridedView& target, const StridedView& source, Rank peer, CallSite where = CallSite::here()) {
    put_view(target, source, nullptr, Completion::nonblocking, peer, where);
  }
  void get(const StridedView& target, const StridedView& source, Rank peer, CallSite where = CallSite::here()) {
    get_view(target, source, Completion::blocking, peer, where);
  }
  void get_nbi(const StridedView& target, const StridedView& source, Rank peer, CallSite where = CallSite::here()) {
    get_view(target, source, Completion::nonblocking, peer, where);
  }

  // Signals: 64 bits at the peer, set or added to atomically, after the data that was put with them.

  template <Transferable T, SignalWord S>
  void put_signal(Symmetric<T> target, std::span<const std::type_identity_t<T>> source, Symmetric<S> signal,
                  std::type_identity_t<S> value, SignalOp op, Rank peer, CallSite where = CallSite::here()) {
    put_signal_span(target, source, signal, value, op, Completion::blocking, peer, where);
  }
  template <Transferable T, SignalWord S>
  void put_signal_nbi(Symmetric<T> target, std::span<const std::type_identity_t<T>> source, Symmetric<S> signal,
                      std::type_identity_t<S> value, SignalOp op, Rank peer, CallSite where = CallSite::here()) {
    put_signal_span(target, source, signal, value, op, Completion::nonblocking, peer, where);
  }
  template <SignalWord S>
  void put_signal(const StridedView& target, const StridedView& source, Symmetric<S> signal,
                  std::type_identity_t<S> value, SignalOp op, Rank peer, CallSite where = CallSite::here()) {
    put_signal_view(target, source, signal, value, op, Completion::blocking, peer, where);
  }
  template <SignalWord S>
  void put_signal_nbi(const StridedView& target, const StridedView& source, Symmetric<S> signal,
                      std::type_identity_t<S> value, SignalOp op, Rank peer, CallSite where = CallSite::here()) {
    put_signal_view(target, source, signal, value, op, Completion::nonblocking, peer, where);
  }
  /// The signal alone. Ordered after nothing: a fence before it orders it.
  template <SignalWord S>
  void signal(Symmetric<S> signal, std::type_identity_t<S> value, SignalOp op, Rank peer,
              CallSite where = CallSite::here()) {
    direct_.acted = true;
    if (std::byte* to = direct_word(signal, peer)) [[likely]]
      return raise(to, std::uint64_t(value), op);
    check_one("signal", signal.size(), where);
    signal_checked({signal.local(), std::uint64_t(value), op}, peer, where);
  }
  /// This rank's signal. Acquire: what was put with what is seen is there.
  template <SignalWord S>
  S signal_fetch(Symmetric<S> signal, CallSite where = CallSite::here()) const {
    check_waitable("signal_fetch", signal, where);
    poll();
    acquires(signal);
    const S seen = detail::load_word(signal.local());
    polled("signal_fetch", signal.local(), rank_, seen, where);
    return seen;
  }
  /// Fetches as signal_fetch does, for callers that look at many signals and poll one of them, or wait: it does not
  /// look at failures and deadlines, and never ends a loop.
  template <SignalWord S>
  S signal_seen(Symmetric<S> signal, CallSite where = CallSite::here()) const {
    check_waitable("signal_seen", signal, where);
    acquires(signal);
    return detail::load_word(signal.local());
  }
  /// Waits until this rank's signal compares so with `value`, and returns what it was then. Acquire. Who raises it may
  /// be said: if that rank ends before, the wait fails at once. Throws `timeout` after the world's timeout,
  /// `peer_lost`.
  template <SignalWord S>
  S signal_wait(Symmetric<S> signal, Comparison comparison, std::type_identity_t<S> value,
                Rank raised_by = WaitNote::anyone, CallSite where = CallSite::here()) {
    check_waitable("signal_wait", signal, where);
    return wait(signal.local(), comparison, value, "signal_wait", raised_by, where);
  }

  // Waits for what is put here. Acquire, as signal_wait.

  template <Waitable T>
  T wait_until(Symmetric<T> variable, Comparison comparison, std::type_identity_t<T> value,
               Rank raised_by = WaitNote::anyone, CallSite where = CallSite::here()) {
    check_waitable("wait_until", variable, where);
    return wait(variable.local(), comparison, value, "wait_until", raised_by, where);
  }
  template <Waitable T>
  bool test(Symmetric<T> variable, Comparison comparison, std::type_identity_t<T> value,
            CallSite where = CallSite::here()) const {
    check_waitable("test", variable, where);
    poll();
    if (!found(variable.local(), comparison, value)) return missed("test", variable, comparison, value, where);
    return direct_.acted = true;
  }
  /// The same for several variables, and one value or one for each of them: `skip[i]`, where there is one, leaves
  /// variable i out. Without variables, `all` is true at once and `any` gives -1.
  template <Waitable T>
  void wait_until_all(Symmetric<T> variables, Comparison comparison, std::type_identity_t<T> value,
                      std::span<const int> skip = {}, CallSite where = CallSite::here()) {
    wait_all<T>(variables, comparison, {&value, 0}, skip, where);
  }
  template <Waitable T>
  void wait_until_all(Symmetric<T> variables, Comparison comparison, std::span<const std::type_identity_t<T>> values,
                      std::span<const int> skip = {}, CallSite where = CallSite::here()) {
    wait_all<T>(variables, comparison, each_of(variables, values, where), skip, where);
  }
  template <Waitable T>
  Index wait_until_any(Symmetric<T> variables, Comparison comparison, std::type_identity_t<T> value,
                       std::span<const int> skip = {}, CallSite where = CallSite::here()) {
    return wait_any<T>(variables, comparison, {&value, 0}, skip, "wait_until_any", where);
  }
  template <Waitable T>
  Index wait_until_any(Symmetric<T> variables, Comparison comparison, std::span<const std::type_identity_t<T>> values,
                       std::span<const int> skip = {}, CallSite where = CallSite::here()) {
    return wait_any<T>(variables, comparison, each_of(variables, values, where), skip, "wait_until_any", where);
  }
  /// Waits for at least one and puts the places of all that have come into `places`, which has room for all. Returns
  /// how many; 0 only where there are no variables.
  template <Waitable T>
  Index wait_until_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison,
                        std::type_identity_t<T> value, std::span<const int> skip = {},
                        CallSite where = CallSite::here()) {
    return wait_some<T>(variables, places, comparison, {&value, 0}, skip, where);
  }
  template <Waitable T>
  Index wait_until_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison,
                        std::span<const std::type_identity_t<T>> values, std::span<const int> skip = {},
                        CallSite where = CallSite::here()) {
    return wait_some<T>(variables, places, comparison, each_of(variables, values, where), skip, where);
  }
  template <Waitable T>
  bool test_all(Symmetric<T> variables, Comparison comparison, std::type_identity_t<T> value,
                std::span<const int> skip = {}, CallSite where = CallSite::here()) const {
    return find_all<T>(variables, comparison, {&value, 0}, skip, where);
  }
  template <Waitable T>
  bool test_all(Symmetric<T> variables, Comparison comparison, std::span<const std::type_identity_t<T>> values,
                std::span<const int> skip = {}, CallSite where = CallSite::here()) const {
    return find_all<T>(variables, comparison, each_of(variables, values, where), skip, where);
  }
  template <Waitable T>
  Index test_any(Symmetric<T> variables, Comparison comparison, std::type_identity_t<T> value,
                 std::span<const int> skip = {}, CallSite where = CallSite::here()) const {
    return find_one<T>(variables, comparison, {&value, 0}, skip, where);
  }
  template <Waitable T>
  Index test_any(Symmetric<T> variables, Comparison comparison, std::span<const std::type_identity_t<T>> values,
                 std::span<const int> skip = {}, CallSite where = CallSite::here()) const {
    return find_one<T>(variables, comparison, each_of(variables, values, where), skip, where);
  }
  template <Waitable T>
  Index test_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison, std::type_identity_t<T> value,
                  std::span<const int> skip = {}, CallSite where = CallSite::here()) const {
    return find_some<T>(variables, places, comparison, {&value, 0}, skip, where);
  }
  template <Waitable T>
  Index test_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison,
                  std::span<const std::type_identity_t<T>> values, std::span<const int> skip = {},
                  CallSite where = CallSite::here()) const {
    return find_some<T>(variables, places, comparison, each_of(variables, values, where), skip, where);
  }

  // Atomics on the first element of `at` at `peer`. Those that return a value fetch: they return what was there before.

  template <AtomicElement T>
  T fetch(Symmetric<T> at, Rank peer, CallSite where = CallSite::here()) {
    return atomic<AtomicOp::fetch>(at, T{}, T{}, peer, where);
  }
  template <AtomicElement T>
  void set(Symmetric<T> at, std::type_identity_t<T> value, Rank peer, CallSite where = CallSite::here()) {
    update<AtomicOp::set>(at, value, peer, where);
  }
  template <AtomicElement T>
  T swap(Symmetric<T> at, std::type_identity_t<T> value, Rank peer, CallSite where = CallSite::here()) {
    return atomic<AtomicOp::swap>(at, value, T{}, peer, where);
  }
  /// Becomes `desired` where it was `expected`.
  template <AtomicInteger T>
  T compare_swap(Symmetric<T> at, std::type_identity_t<T> expected, std::type_identity_t<T> desired, Rank peer,
                 CallSite where = CallSite::here()) {
    return atomic<AtomicOp::compare_swap>(at, desired, expected, peer, where);
  }
  template <AtomicInteger T>
  T fetch_inc(Symmetric<T> at, Rank peer, CallSite where = CallSite::here()) {
    return atomic<AtomicOp::add>(at, T{1}, T{}, peer, where);
  }
  template <AtomicInteger T>
  void inc(Symmetric<T> at, Rank peer, CallSite where = CallSite::here()) {
    update<AtomicOp::add>(at, T{1}, peer, where);
  }
#define TRANSHIP_ATOMIC(name, op)                                                                                \
  template <AtomicInteger T>                                                                                     \
  T fetch_##name(Symmetric<T> at, std::type_identity_t<T> value, Rank peer, CallSite where = CallSite::here()) { \
    return atomic<AtomicOp::op>(at, value, T{}, peer, where);                                                    \
  }                                                                                                              \
  template <AtomicInteger T>                                                                                     \
  void name(Symmetric<T> at, std::type_identity_t<T> value, Rank peer, CallSite where = CallSite::here()) {      \
    update<AtomicOp::op>(at, value, peer, where);                                                                \
  }                                                                                                              \
  template <AtomicInteger T>                                                                                     \
  void fetch_##name##_nbi(T& before, Symmetric<T> at, std::type_identity_t<T> value, Rank peer,                  \
                          CallSite where = CallSite::here()) {                                                   \
    atomic_nbi<AtomicOp::op>(before, at, value, T{}, peer, where);                                               \
  }
  TRANSHIP_ATOMIC(add, add)
  TRANSHIP_ATOMIC(bit_and, bit_and)
  TRANSHIP_ATOMIC(bit_or, bit_or)
  TRANSHIP_ATOMIC(bit_xor, bit_xor)
#undef TRANSHIP_ATOMIC
  template <AtomicElement T>
  void fetch_nbi(T& before, Symmetric<T> at, Rank peer, CallSite where = CallSite::here()) {
    atomic_nbi<AtomicOp::fetch>(before, at, T{}, T{}, peer, where);
  }
  template <AtomicElement T>
  void swap_nbi(T& before, Symmetric<T> at, std::type_identity_t<T> value, Rank peer,
                CallSite where = CallSite::here()) {
    atomic_nbi<AtomicOp::swap>(before, at, value, T{}, peer, where);
  }
  template <AtomicInteger T>
  void compare_swap_nbi(T& before, Symmetric<T> at, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                        Rank peer, CallSite where = CallSite::here()) {
    atomic_nbi<AtomicOp::compare_swap>(before, at, desired, expected, peer, where);
  }
  template <AtomicInteger T>
  void fetch_inc_nbi(T& before, Symmetric<T> at, Rank peer, CallSite where = CallSite::here()) {
    atomic_nbi<AtomicOp::add>(before, at, T{1}, T{}, peer, where);
  }

  // Order.

  // What this rank does to its memory by itself: said where programs are simulated, which then find what is not held
  // apart from it. Elsewhere these cost nothing.

  /// The rank loads, or stores, its elements, from the last wait or barrier to the next.
  template <Transferable T>
  void reads(Symmetric<T> array, CallSite where = CallSite::here()) const {
    touches(array, Touch::loads, "loads", where);
  }
  template <Transferable T>
  void writes(Symmetric<T> array, CallSite where = CallSite::here()) const {
    touches(array, Touch::stores, "stores", where);
  }
  /// The same of memory that is not symmetric, which transfers of this rank may still read or write.
  template <class T, std::size_t extent>
  void reads(std::span<T, extent> memory, CallSite where = CallSite::here()) const {
    touches(memory.data(), memory.size_bytes(), Touch::loads, "loads", where);
  }
  template <class T, std::size_t extent>
  void writes(std::span<T, extent> memory, CallSite where = CallSite::here()) const {
    touches(memory.data(), memory.size_bytes(), Touch::stores, "stores", where);
  }
  /// The rank has waited for its elements by other means than these: what it has seen there is ordered as by
  /// wait_until.
  template <Transferable T>
  void acquires(Symmetric<T> array) const {
    if (transport_) [[unlikely]]
      seen_in_transport(array.local(), bytes_of(array));
  }

  /// Orders what this context has put and updated at each peer before what comes after; completes nothing.
  void fence(CallSite where = CallSite::here()) {
    release_fence();
    if (transport_) [[unlikely]]
      fence_transport(where);
  }
  /// Completes all transfers of this context: puts are at their peers, for all to see; gets and values are here. Waits
  /// for peers whose memory is not reachable.
  void quiet(CallSite where = CallSite::here()) {
    full_fence();
    if (transport_) [[unlikely]]
      quiet_transport(where);
  }

  /// Completes the transfers to, and from, one peer at least.
  void quiet(Rank peer, CallSite where = CallSite::here()) {
    check_peer(peer, where);
    quiet(where);
  }

  // Memory of peers, to load and store.

  /// Whether that can be done. Transfers to such a peer are complete when their calls return.
  bool reaches(Rank peer) const {
    return peer == rank_ || is_direct(peer);
  }
  /// The elements of `array` at `peer`. Throws `unsupported` when that peer's memory is not reachable.
  template <Transferable T>
  std::span<T> peer_array(Symmetric<T> array, Rank peer, CallSite where = CallSite::here()) const {
    return {static_cast<T*>(peer_address(array.local(), array.size(), sizeof(T), peer, where)),
            std::size_t(array.size())};
  }
  /// The elements of `array` at all members of `team`, to store to all and to load combined. Throws `unsupported` when
  /// the memory of any of them is not reachable. Valid while `team` is held.
  template <Transferable T>
  MulticastSpan<T> multicast_array(const Team& team, Symmetric<T> array, CallSite where = CallSite::here()) const {
    const Members& places = team.places();
    void* first = nullptr;
    for (int member = places.count - 1; member >= 0; --member)
      first = peer_address(array.local(), array.size(), sizeof(T), team.world_rank(member), where);
    if (places.listed) {  // counted from the heap that `direct_.first` is
      first = static_cast<std::byte*>(first) - std::ptrdiff_t(places.rank_of(0)) * std::ptrdiff_t(direct_.stride);
      return {static_cast<unsigned char*>(first), Index(direct_.stride), places.count, array.size(), places.list()};
    }
    return {static_cast<unsigned char*>(first), places.stride * Index(direct_.stride), places.count, array.size()};
  }

 private:
  friend class SymmetricHeap;
  friend class Team;
  friend class World;
  friend class detail::LaneMessenger;
  friend void detail::count_forks();

  /// The bytes that one side of a transfer touches: [first, end) from its base.
  struct Reach {
    std::int64_t first = 0;
    std::int64_t end = 0;
  };
  static Reach reach_of(const CopyBlock& block, const long long* strides, int width);
  /// `count` elements of `width` bytes side by side, of a slice of the heap that has `slice` of them.
  struct Run {
    std::size_t bytes = 0;
    std::size_t width = 1;
    std::size_t count = 0;
    Index slice = 0;
  };
  struct SignalAt {
    void* local = nullptr;
    std::uint64_t value = 0;
    SignalOp op = SignalOp::set;
  };
  template <class T>
  static constexpr WordKind kind_of = std::is_floating_point_v<T> ? WordKind::floating : WordKind::integer;
  template <class T>
  static constexpr bool is_word = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8;

  /// Where `local` is at `peer` in this rank's addresses; nullptr unless a direct transfer of so many bytes is allowed.
  std::byte* direct(const void* local, std::size_t bytes, Rank peer) const noexcept {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(local) - direct_.own;
    if (bytes > direct_.bytes || offset > direct_.bytes - bytes ||
        unsigned(peer - direct_.first_peer) >= unsigned(direct_.peers)) [[unlikely]]
      return nullptr;
    return direct_.first + std::size_t(peer) * direct_.stride + offset;
  }

  /// The first element of a slice, which it must have.
  template <class T>
  std::byte* direct(Symmetric<T> slice, Rank peer) const noexcept {
    return slice.size() > 0 ? direct(slice.local(), sizeof(T), peer) : nullptr;
  }
  /// The same of a word that is raised or updated, which has a natural place.
  template <class T>
  std::byte* direct_word(Symmetric<T> word, Rank peer) const noexcept {
    return is_in_place<T>(word.local()) ? direct(word, peer) : nullptr;
  }
  void check_one(const char* what, Index size, CallSite where) const {
    if (size < 1) [[unlikely]]
      refuse_count(what, 1, size, where);
  }
  /// What lies in this rank's own heap, to be looked at there.
  template <class T>
  void check_waitables(const char* what, Symmetric<T> variables, CallSite where) const {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(variables.local()) - direct_.own,
                      bytes = bytes_of(variables);
    if (bytes > own_bytes_ || offset > own_bytes_ - bytes || !is_in_place<T>(variables.local())) [[unlikely]]
      checked_words(what, variables.local(), variables.size(), sizeof(T), where);
  }
  template <class T>
  void check_waitable(const char* what, Symmetric<T> variable, CallSite where) const {
    check_one(what, variable.size(), where);
    check_waitables(what, Symmetric<T>::at(variable.local(), 1), where);
  }
  /// More than there is for a size that does not fit.
  template <class T>
  static std::size_t bytes_of(Symmetric<T> array) noexcept {
    const bool fits = std::size_t(array.size()) <= std::size_t(INT64_MAX) / sizeof(T);
    return fits ? std::size_t(array.size()) * sizeof(T) : SIZE_MAX;
  }

  // Release and acquire, which cost nothing here on x86, so that a rank that waits for an element sees what came before
  // it.
  template <class T>
  static void store(std::byte* to, const T& value) noexcept {
    if constexpr (is_word<T>)
      if (alignof(T) == sizeof(T) || is_in_place<T>(to))
        return detail::store_word(reinterpret_cast<detail::Word<T>*>(to), std::bit_cast<detail::Word<T>>(value));
    std::memcpy(to, &value, sizeof value);
  }
  template <class T>
  static void load(const std::byte* from, T& value) noexcept {
    if constexpr (is_word<T>)
      if (alignof(T) == sizeof(T) || is_in_place<T>(from)) {
        value = std::bit_cast<T>(detail::load_word(reinterpret_cast<const detail::Word<T>*>(from)));
        return;
      }
    std::memcpy(&value, from, sizeof value);
  }
  template <class T>
  static bool is_in_place(const void* at) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) % sizeof(T) == 0;
  }
  static void raise(std::byte* at, std::uint64_t value, SignalOp op) noexcept {
    detail::raise_word(reinterpret_cast<std::uint64_t*>(at), value, op);
  }

  /// More than a few; what overlaps is moved.
  void put_many(void* to, const void* from, std::size_t bytes) const noexcept;
  void get_many(void* to, const void* from, std::size_t bytes) const noexcept;
  using CopyMany = decltype(&Context::put_many);
  // GCC 12 takes the lengths of its branches for lengths of what is copied where it knows how long an array is.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
  /// Few bytes in few instructions.
  void copy(void* to, const void* from, std::size_t bytes, CopyMany many) const noexcept {
    const auto some = [&]<class Word>(Word) {  // the first and the last of them, which may overlap
      Word first, last;
      std::memcpy(&first, from, sizeof first);
      std::memcpy(&last, static_cast<const std::byte*>(from) + bytes - sizeof last, sizeof last);
      std::memcpy(to, &first, sizeof first);
      std::memcpy(static_cast<std::byte*>(to) + bytes - sizeof last, &last, sizeof last);
    };
    struct Pair {
      std::uint64_t words[2];
    };
    struct Four {
      std::uint64_t words[4];
    };
    if (bytes == 8) {
      std::uint64_t word;  // memcpy must not be given what overlaps
      std::memcpy(&word, from, sizeof word);
      return void(std::memcpy(to, &word, sizeof word));
    }
    if (bytes > 64) return (this->*many)(to, from, bytes);
    if (bytes >= 32) return some(Four{});
    if (bytes >= 16) return some(Pair{});
    if (bytes > 8) return some(std::uint64_t{});
    if (bytes >= 4) return some(std::uint32_t{});
    if (bytes >= 2) return some(std::uint16_t{});
    if (bytes == 1) std::memcpy(to, from, 1);
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  /// What moves between a slice of the heap and `other` elements.
  template <class T>
  Run smaller(Symmetric<T> ours, Index other, CallSite where) const {
    if (ours.size() != other && sizes_ == SizeRule::equal) [[unlikely]]
      refuse_sizes(ours.size(), other, where);
    // A size below 0, and one that does not fit, reach farther than any heap: then nothing moves.
    const std::size_t count = std::min(std::size_t(ours.size()), std::size_t(other));
    return {count * sizeof(T), sizeof(T), count, ours.size()};
  }
  template <class T>
  void put_span(Symmetric<T> target, std::span<const T> source, Completion completion, Rank peer, CallSite where) {
    const Run run = smaller(target, Index(source.size()), where);
    direct_.acted = true;
    if (std::byte* to = direct(target.local(), bytes_of(target), peer)) [[likely]]
      copy(to, source.data(), run.bytes, &Context::put_many);
    else
      put_checked(target.local(), source.data(), run, nullptr, completion, peer, where);
  }
  template <class T>
  void get_span(std::span<std::remove_const_t<T>> target, Symmetric<T> source, Completion completion, Rank peer,
                CallSite where) {
    const Run run = smaller(source, Index(target.size()), where);
    if (const std::byte* from = direct(source.local(), bytes_of(source), peer)) [[likely]]
      copy(target.data(), from, run.bytes, &Context::get_many);
    else
      get_checked(target.data(), source.local(), run, completion, peer, where);
    if (--polls_left_ <= 0) [[unlikely]]
      look_at("get", source.local(), peer, target.data(), run.bytes, where);
  }
  template <class T, class S>
  void put_signal_span(Symmetric<T> target, std::span<const T> source, Symmetric<S> signal, S value, SignalOp op,
                       Completion completion, Rank peer, CallSite where) {
    const Run run = smaller(target, Index(source.size()), where);
    std::byte* to = direct(target.local(), bytes_of(target), peer);
    std::byte* word = direct(signal, peer);
    direct_.acted = true;
    if (to && word && is_in_place<S>(word)) [[likely]] {
      copy(to, source.data(), run.bytes, &Context::put_many);
      raise(word, std::uint64_t(value), op);
    } else {
      check_one("the signal of a put_signal", signal.size(), where);
      const SignalAt at{signal.local(), std::uint64_t(value), op};
      put_checked(target.local(), source.data(), run, &at, completion, peer, where);
    }
  }

  template <class S>
  void put_signal_view(const StridedView& target, const StridedView& source, Symmetric<S> signal, S value, SignalOp op,
                       Completion completion, Rank peer, CallSite where) {
    check_one("the signal of a put_signal", signal.size(), where);
    const SignalAt at{signal.local(), std::uint64_t(value), op};
    put_view(target, source, &at, completion, peer, where);
  }

  template <AtomicOp op, class T>
  static T apply(std::byte* at, T operand, T expected) noexcept {
    using Word = detail::Word<T>;
    auto* word = reinterpret_cast<Word*>(at);
    return std::bit_cast<T>(detail::update_word<op>(word, std::bit_cast<Word>(operand), std::bit_cast<Word>(expected)));
  }
  static constexpr const char* name_of(AtomicOp op) noexcept {
    constexpr const char* names[] = {"set",       "fetch",         "swap",         "compare_swap",
                                     "fetch_add", "fetch_bit_and", "fetch_bit_or", "fetch_bit_xor"};
    return names[static_cast<int>(op)];
  }
  template <AtomicOp op, class T>
  T atomic(Symmetric<T> at, T operand, T expected, Rank peer, CallSite where) {
    T before{};
    if (std::byte* word = direct_word(at, peer)) [[likely]]
      before = apply<op>(word, operand, expected);
    else {
      check_one(name_of(op), at.size(), where);
      atomic_checked({at.local(), sizeof(T), kind_of<T>}, op, &operand, &expected, &before, Completion::blocking, peer,
                     where);
    }
    polled(name_of(op), at.local(), peer, before, where);
    return before;
  }
  template <AtomicOp op, class T>
  void update(Symmetric<T> at, T operand, Rank peer, CallSite where) {
    direct_.acted = true;
    if (std::byte* word = direct_word(at, peer)) [[likely]]
      return void(apply<op>(word, operand, T{}));
    check_one("an atomic update", at.size(), where);
    atomic_checked({at.local(), sizeof(T), kind_of<T>}, op, &operand, &operand, nullptr, Completion::blocking, peer,
                   where);
  }
  template <AtomicOp op, class T>
  void atomic_nbi(T& before, Symmetric<T> at, T operand, T expected, Rank peer, CallSite where) {
    if (std::byte* word = direct_word(at, peer)) [[likely]]
      before = apply<op>(word, operand, expected);
    else {
      check_one(name_of(op), at.size(), where);
      atomic_checked({at.local(), sizeof(T), kind_of<T>}, op, &operand, &expected, &before, Completion::nonblocking,
                     peer, where);
    }
    polled(name_of(op), at.local(), peer, before, where);
  }

  template <class T>
  WaitNote note_of(const T* variable, Comparison comparison, T wanted, const char* label, Rank raised_by,
                   CallSite where) const {
    WaitNote note(label, raised_by, where);
    note.flag_rank = rank_;
    note.flag_index = std::int64_t(reinterpret_cast<std::uintptr_t>(variable) - direct_.own);
    note.wants(comparison, wanted);
    return note;
  }
  template <class T>
  T wait(const T* variable, Comparison comparison, T wanted, const char* label, Rank raised_by, CallSite where) {
    T seen = detail::load_word(variable);
    // In a loop of its own: the signal of a rank that runs on another core comes within it.
    for (int round = 0; round < spin_rounds_ && !holds(seen, comparison, wanted); ++round)
      seen = detail::load_word(variable);
    if (!holds(seen, comparison, wanted)) [[unlikely]] {
      WaitNote note = note_of(variable, comparison, wanted, label, raised_by, where);
      world_->wait_until(
          [&] {
            seen = detail::load_word(variable);
            note.sees(seen);
            return holds(seen, comparison, wanted);
          },
          note);
    }
    direct_.acted = true;
    acquires(Symmetric<const T>::at(variable, 1));
    return seen;
  }
  template <class T>
  bool found(const T* variable, Comparison comparison, T value) const {
    acquires(Symmetric<const T>::at(variable, 1));
    return holds<T>(detail::load_word(variable), comparison, value);
  }
  /// After a test that has not found what it looks for: false.
  template <class T>
  bool missed(const char* label, Symmetric<T> variables, Comparison comparison, T value, CallSite where) const {
    if (--polls_left_ > 0 || variables.size() == 0) [[likely]]
      return false;
    WaitNote note = note_of(variables.local(), comparison, value, label, WaitNote::anyone, where);
    note.sees(detail::load_word(variables.local()));
    look(note);
    return false;
  }
  /// After a value has come that a loop may look for.
  template <class T>
  void polled(const char* label, const void* local, Rank peer, const T& value, CallSite where) const {
    if (--polls_left_ > 0) [[likely]]
      return;
    if constexpr (std::is_integral_v<T>) {
      WaitNote note = note_of(static_cast<const T*>(local), Comparison::equal, value, label, WaitNote::anyone, where);
      note.shows = WaitNote::Shows::value;
      note.flag_rank = peer;
      note.sees(value);
      look(note);
    } else {
      look_at(label, local, peer, &value, sizeof value, where);
    }
  }
  /// What several variables are compared with: one value, or one for each.
  template <class T>
  struct Wanted {
    const T* first;
    Index stride;

    T operator[](Index i) const { return first[i * stride]; }
  };
  template <class T>
  Wanted<T> each_of(Symmetric<T> variables, std::span<const T> values, CallSite where) const {
    if (Index(values.size()) < variables.size())
      refuse_count("the values", variables.size(), Index(values.size()), where);
    return {values.data(), 1};
  }
  template <class T>
  Index find_any(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip) const {
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i) && found<T>(variables.local() + i, comparison, wanted[i])) return i;
    return -1;
  }
  static bool skipped(std::span<const int> skip, Index i) noexcept {
    return std::size_t(i) < skip.size() && skip[std::size_t(i)] != 0;
  }
  template <class T>
  void wait_all(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                CallSite where) {
    check_waitables("wait_until_all", variables, where);
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i))
        wait(variables.local() + i, comparison, wanted[i], "wait_until_all", WaitNote::anyone, where);
  }
  template <class T>
  Index wait_any(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                 const char* label, CallSite where) {
    check_waitables(label, variables, where);
    Index first = 0;
    while (first < variables.size() && skipped(skip, first)) ++first;
    if (first == variables.size()) return -1;
    const T* shown = variables.local() + first;  // in the note it stands for all of them
    WaitNote note = note_of(shown, comparison, wanted[first], label, WaitNote::anyone, where);
    Index place = -1;
    world_->wait_until(
        [&] {
          note.sees(detail::load_word(shown));
          return (place = find_any<T>(variables, comparison, wanted, skip)) >= 0;
        },
        note);
    direct_.acted = true;
    return place;
  }
  template <class T>
  Index wait_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison, Wanted<T> wanted,
                  std::span<const int> skip, CallSite where) {
    if (Index(places.size()) < variables.size()) refuse_room(places.size(), variables.size(), where);
    if (wait_any<T>(variables, comparison, wanted, skip, "wait_until_some", where) < 0) return 0;
    return find_some<T>(variables, places, comparison, wanted, skip, where);
  }
  template <class T>
  bool find_all(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                CallSite where) const {
    check_waitables("test_all", variables, where);
    poll();
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i) && !found<T>(variables.local() + i, comparison, wanted[i]))
        return missed("test_all", variables.from(i), comparison, wanted[i], where);
    return direct_.acted = true;
  }
  template <class T>
  Index find_one(Symmetric<T> variables, Comparison comparison, Wanted<T> wanted, std::span<const int> skip,
                 CallSite where) const {
    check_waitables("test_any", variables, where);
    poll();
    const Index place = find_any<T>(variables, comparison, wanted, skip);
    if (place >= 0)
      direct_.acted = true;
    else if (variables.size() > 0)
      missed("test_any", variables, comparison, wanted[0], where);
    return place;
  }
  template <class T>
  Index find_some(Symmetric<T> variables, std::span<Index> places, Comparison comparison, Wanted<T> wanted,
                  std::span<const int> skip, CallSite where) const {
    if (Index(places.size()) < variables.size()) refuse_room(places.size(), variables.size(), where);
    check_waitables("test_some", variables, where);
    poll();
    Index count = 0;
    for (Index i = 0; i < variables.size(); ++i)
      if (!skipped(skip, i) && found<T>(variables.local() + i, comparison, wanted[i])) places[std::size_t(count++)] = i;
    if (count > 0)
      direct_.acted = true;
    else if (variables.size() > 0)
      missed("test_some", variables, comparison, wanted[0], where);
    return count;
  }

  void put_checked(void* target, const void* source, Run run, const SignalAt* signal, Completion completion, Rank peer,
                   CallSite where);
  void get_checked(void* target, const void* source, Run run, Completion completion, Rank peer, CallSite where);
  void put_view(const StridedView& target, const StridedView& source, const SignalAt* signal, Completion completion,
                Rank peer, CallSite where);
  void get_view(const StridedView& target, const StridedView& source, Completion completion, Rank peer, CallSite where);
  void get_block(void* target, const CopyBlock& block, int width, const void* source, Completion completion, Rank peer,
                 CallSite where);
  void put_block(void* target, const CopyBlock& block, int width, const void* source, const SignalAt* signal,
                 Completion completion, Rank peer, CallSite where);
  void signal_checked(const SignalAt& signal, Rank peer, CallSite where);
  struct AtomicWord {
    void* local = nullptr;
    std::size_t width = 0;
    WordKind kind{};
  };
  void atomic_checked(const AtomicWord& word, AtomicOp op, const void* operand, const void* expected, void* before,
                      Completion completion, Rank peer, CallSite where);
  /// Throws unless the elements lie in this rank's heap. The offset of the first byte, or 0 without elements.
  std::size_t checked_elements(const char* what, const void* local, Index size, std::size_t width,
                               CallSite where) const;
  /// Throws unless the slice of a run lies there.
  void check_slice(const char* what, const void* local, const Run& run, CallSite where) const;
  /// The same of words, which have natural places.
  std::size_t checked_words(const char* what, const void* local, Index size, std::size_t width, CallSite where) const;
  void* peer_address(const void* local, Index size, std::size_t width, Rank peer, CallSite where) const;
  /// The offset in the heap of [local + first, local + end). Throws `invalid_use` where that is not allowed.
  std::size_t checked_offset(const char* what, const void* local, std::int64_t first, std::int64_t end,
                             CallSite where) const;
  void check_peer(Rank peer, CallSite where) const;
  /// Where a word that may be looked at meanwhile lies at a peer that is_direct().
  std::byte* checked_word(const char* what, const void* local, std::size_t bytes, Rank peer, CallSite where) const;
  bool is_direct(Rank peer) const noexcept {
    return !transport_ || world_->heap().place().is_direct(peer);
  }
  std::byte* at_peer(std::size_t offset, Rank peer) const noexcept {
    return direct_.first + std::size_t(places_ ? places_[peer] : peer) * direct_.stride + offset;
  }
  /// The same memory of this rank by one address, for what it has registered and reaches at two.
  const std::byte* in_heap(const void* own) const noexcept;
  bool may_overlap(const void* to, const void* from, std::size_t bytes) const noexcept;
  /// Whether [source + from.first, ...) and [target + to.first, ...) have a byte in common.
  bool overlap(const void* target, Reach to, const void* source, Reach from) const noexcept;
  /// Of a copy in a child of the rank's process: all calls come to those that look, and throw.
  void close_in_child() noexcept;
  [[noreturn]] void refuse_sizes(Index ours, Index other, CallSite where) const;
  [[noreturn]] void refuse_count(const char* what, Index needed, Index size, CallSite where) const;
  [[noreturn]] void refuse_room(std::size_t room, Index needed, CallSite where) const;
  void fence_transport(CallSite where);
  void quiet_transport(CallSite where);
  /// For failures and deadlines, and when to look again.
  void look(const WaitNote& note) const;
  /// The same after bytes have come from `peer`.
  void look_at(const char* label, const void* local, Rank peer, const CopyBlock& block, int width, const void* target,
               CallSite where) const;
  void look_at(const char* label, const void* local, Rank peer, const void* seen, std::size_t bytes,
               CallSite where) const;
  void poll_transport() const;
  void seen_in_transport(const void* local, std::size_t bytes) const;
  void touches_in_transport(const void* local, std::size_t bytes, Touch touch, const char* name, CallSite where) const;
  void check_touched(const void* local, Index size, std::size_t width, CallSite where) const;
  void touches(const void* local, std::size_t bytes, Touch touch, const char* name, CallSite where) const {
    if (transport_) [[unlikely]]
      touches_in_transport(local, bytes, touch, name, where);
  }
  template <class T>
  void touches(Symmetric<T> array, Touch touch, const char* name, CallSite where) const {
    if (!transport_) [[likely]]
      return;
    check_touched(array.local(), array.size(), sizeof(T), where);
    touches_in_transport(array.local(), bytes_of(array), touch, name, where);
  }
  /// Before a look at what has come here that does not wait for it.
  void poll() const {
    if (transport_) [[unlikely]]
      poll_transport();
  }

  World* world_;
  DirectPuts direct_;
  const Rank* places_;          // of heaps, where they lie at no equal steps
  std::size_t own_bytes_ = 0;   // the same for looks at what is here
  mutable int polls_left_ = 1;  // until the next look
  int size_;
  Rank rank_;
  int spin_rounds_;
  SizeRule sizes_;
  HeapChecks checks_;
  std::size_t heap_bytes_;
  detail::ContextList::iterator in_process_, in_world_;
  int exceptions_before_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace tranship
