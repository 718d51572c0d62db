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

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include <tranship/base/call_site.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/fabric/forked.hpp>
#include <tranship/fabric/seam/wait_note.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/team.hpp>
#include <tranship/fabric/transfers.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/lanes/multicast.hpp>

namespace tranship {

namespace detail {
class LaneMessenger;
class CoveredCalls;
class LibraryCalls;
class MemoryUse;
class Polls;
}  // namespace detail

enum class SizeRule : std::uint8_t {
  smaller_wins,  ///< target and source may differ in size
  equal,         ///< they may not
};

enum class HeapChecks : std::uint8_t {
  bounds,  ///< that what is moved lies in the symmetric heap: always
  blocks,  ///< that it lies in one block that this rank has not released; some 50 ns a call
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
class Context : private detail::Transfers {
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
  HeapChecks checks() const noexcept { return checks_blocks_ ? HeapChecks::blocks : HeapChecks::bounds; }

  /// For code that is compiled at run time: what a put needs that is a store of the calling thread.
  const detail::DirectTransfers& direct_transfers() const noexcept { return direct_; }

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

  // Atomics on the first element of `at` at `peer`, as the table says (kernels/atomics.def):
  //
  //   T fetch(at, peer)                                  void set(at, value, peer)
  //   T swap(at, value, peer)                            T compare_swap(at, expected, desired, peer)
  //   T fetch_inc(at, peer)                              void inc(at, peer)
  //   T fetch_add(at, value, peer)                       void add(at, value, peer)
  //   T fetch_bit_and, fetch_bit_or, fetch_bit_xor       void bit_and, bit_or, bit_xor
  //
  // Those that return a value fetch: they return what was there before. Each of them has a form with _nbi, which puts
  // it into its first argument: swap_nbi(before, at, value, peer). Variables are integers of 4 or 8 bytes; fetch, set
  // and swap take floating-point numbers, too. compare_swap makes `desired` of what was `expected`.

#define TRANSHIP_ATOMIC_fetched(name, op, elements, takes)                                               \
  template <Atomic##elements T>                                                                          \
  T name(Symmetric<T> at, TRANSHIP_TAKES_##takes(std::type_identity_t<T>) Rank peer,                     \
         CallSite where = CallSite::here()) {                                                            \
    return atomic<AtomicOp::op>(at, TRANSHIP_OPERANDS_##takes(T), peer, where);                          \
  }                                                                                                      \
  template <Atomic##elements T>                                                                          \
  void name##_nbi(T& before, Symmetric<T> at, TRANSHIP_TAKES_##takes(std::type_identity_t<T>) Rank peer, \
                  CallSite where = CallSite::here()) {                                                   \
    atomic_nbi<AtomicOp::op>(before, at, TRANSHIP_OPERANDS_##takes(T), peer, where);                     \
  }
#define TRANSHIP_ATOMIC_nothing(name, op, elements, takes)                              \
  template <Atomic##elements T>                                                         \
  void name(Symmetric<T> at, TRANSHIP_TAKES_##takes(std::type_identity_t<T>) Rank peer, \
            CallSite where = CallSite::here()) {                                        \
    update<AtomicOp::op>(at, TRANSHIP_OPERANDS_##takes(T), peer, where);                \
  }
#define TRANSHIP_ATOMIC(name, op, elements, takes, returns, word) TRANSHIP_ATOMIC_##returns(name, op, elements, takes)
#include <tranship/kernels/atomics.def>
#undef TRANSHIP_ATOMIC_fetched
#undef TRANSHIP_ATOMIC_nothing

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
    acquired(array);
  }

  /// Orders what this context has put and updated at each peer before what comes after; completes nothing.
  void fence(CallSite where = CallSite::here()) {
    release_fence();
    if (transport_) [[unlikely]]
      fence_transport(std::nullopt, where);
  }
  /// Completes all transfers of this context: puts are at their peers, for all to see; gets and values are here. Waits
  /// for peers whose memory is not reachable.
  void quiet(CallSite where = CallSite::here()) {
    full_fence();
    if (transport_) [[unlikely]]
      quiet_transport(std::nullopt, where);
  }

  /// The fence and the quiet of the transfers to, and from, one peer. Other transfers may remain under way.
  void fence(Rank peer, CallSite where = CallSite::here()) {
    check_peer(peer, where);
    release_fence();
    if (transport_ && !is_direct(peer)) [[unlikely]]
      fence_transport(peer, where);
  }
  void quiet(Rank peer, CallSite where = CallSite::here()) {
    check_peer(peer, where);
    full_fence();
    if (transport_ && !is_direct(peer)) [[unlikely]]
      quiet_transport(peer, where);
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
    const Members& members = team.members();
    for (int member = members.count - 1; member >= 0; --member)
      peer_address(array.local(), array.size(), sizeof(T), members.rank_of(member), where);
    return {.heaps = direct_.heaps,
            .offset_bytes = direct_.heaps.offset_of(array.local()),
            .first_rank = members.first,
            .stride = members.stride,
            .ranks = members.list(),
            .members = members.count,
            .size = array.size()};
  }

 private:
  friend class SymmetricHeap;
  friend class Team;
  friend class World;
  friend class detail::LaneMessenger;
  friend class detail::CoveredCalls;
  friend class detail::LibraryCalls;
  friend class detail::MemoryUse;
  friend class detail::Polls;
  friend void detail::count_forks();

  /// Of a copy in a child of the rank's process: all calls come to those that look, and throw.
  void close_in_child() noexcept;

  detail::ContextList::iterator in_process_, in_world_;
  int exceptions_before_;
};

}  // namespace tranship
