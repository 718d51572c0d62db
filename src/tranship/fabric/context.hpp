// Context: one-sided transfers. A rank puts into, gets from and updates the symmetric heaps of its peers without any
// call on their side; signals, waits and barriers tell the peers which data has arrived.
//
// Completion follows OpenSHMEM and NVSHMEM:
// - put, p and put_signal return when the source may be reused. The data is visible at the peer only after a quiet or a
//   barrier, or once a signal that was put with it has been seen.
// - get, g and fetching atomics return with the value.
// - Calls with the suffix _nbi ("non-blocking, implicit") may return earlier. Until the next quiet, the source of a put
//   must not be written, and the target of a get and a fetched value must not be used.
// - fence() orders puts and non-fetching atomics per peer: those before it are visible at that peer before those after
//   it. It does not order non-blocking gets or fetches, and completes nothing.
// - quiet() completes all operations of this context: puts are visible at their peers to all ranks; gets and fetched
//   values have arrived.
// - put_signal orders its own signal after its own data, and nothing else. A put_signal of no elements still signals.
// If a peer is reachable, every call to it completes when it returns, with _nbi or without. A program that relies on
// this is wrong and fails on the simulated fabric.
//
// When target and source differ in size, the smaller size is moved, as in NVSHMEM; with SizeRule::equal such a call
// throws. Misuse (a rank outside the world, memory outside the symmetric heap, an empty slice where an element is
// needed) throws `invalid_use` before anything is transferred.
//
// Polling loops (over test, signal_fetch, get, g or fetching atomics) end as waits do. These calls throw `peer_lost`
// soon after a rank has failed. They throw `timeout` when no place that the rank polls has changed for the world's
// timeout and the rank has meanwhile made no transfer, collective call or wait in any context. Other work between polls
// does not count as activity, so a rank that computes and now and then asks whether to stop needs a timeout longer than
// its computation, or none. "Soon" is about ten microseconds, or the second poll if polls are rarer than that, or 1024
// polls if they suddenly become rare. A get of more than 64 KiB counts as a transfer, not as a poll. A test that
// returns true never throws. A rank that polls in vain yields its core about as often as it makes these checks.
//
// A context is used by the thread of its rank only. Atomics and signals on one variable are atomic with each other only
// if all of them access it with the same width and the same kind (integer or floating point).
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
  equal,         ///< a difference in size throws `invalid_use`
};

enum class HeapChecks : std::uint8_t {
  bounds,  ///< what is moved must lie in the symmetric heap: always checked
  blocks,  ///< and in one block that this rank has not released; about 50 ns per call
};

struct ContextOptions {
  SizeRule sizes = SizeRule::smaller_wins;
  /// The environment variable TRANSHIP_HEAP_CHECKS=blocks raises this to `blocks`.
  HeapChecks checks = HeapChecks::bounds;
};

template <class T>
concept SignalWord = std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::int64_t>;
/// Types that can be fetched, set and swapped: 4 or 8 bytes.
template <class T>
concept AtomicElement = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept AtomicInteger = std::is_integral_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
/// Types that a rank can wait for.
template <class T>
concept Waitable = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// No call is collective. Only the waits (signal_wait, wait_until and its variants), quiet, and blocking calls to peers
/// whose memory is not reachable wait; they throw `timeout` after the world's timeout, or `peer_lost`. Every call
/// throws `invalid_use` for misuse, as the head of this file says. A transfer to a reachable peer allocates nothing: a
/// put or a get is a copy by this thread, and an atomic is one instruction.
class Context : private detail::Transfers {
 public:
  /// Local. World::context() is the default context; further contexts of a rank complete independently of it. The world
  /// must outlive the context. Throws `bad_text` if TRANSHIP_HEAP_CHECKS is neither bounds nor blocks.
  explicit Context(World& world, const ContextOptions& options = {});
  ~Context();  ///< completes pending operations, as quiet() does; not collective
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  World& world() const noexcept { return *world_; }
  /// Returns true if every transfer of this context, to any peer, is complete when its call returns.
  bool completes_at_once() const noexcept { return !transport_; }
  /// Returns true if transfers to and from this peer are complete when their calls return.
  bool completes_at_once(Rank peer) const noexcept { return is_direct(peer); }
  HeapChecks checks() const noexcept { return checks_blocks_ ? HeapChecks::blocks : HeapChecks::bounds; }

  /// For code that is compiled at run time: the values that it needs to make a put by a store of the calling thread.
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
  /// Returns the first element of `source` at `peer`.
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

  // Boxes. Element (i, j, ...) of the source goes to element (i, j, ...) of the target, whatever their strides. One
  // side lies in the symmetric heap and is given by its local address. Throws `mismatch` when element types or extents
  // differ, and `unsupported` for complex numbers in two planes.

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

  // Signals: a 64-bit word at the peer, set or added to atomically after the data that was put with it is visible.

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
  /// Sends the signal alone. It is not ordered after earlier puts unless a fence comes between.
  template <SignalWord S>
  void signal(Symmetric<S> signal, std::type_identity_t<S> value, SignalOp op, Rank peer,
              CallSite where = CallSite::here()) {
    direct_.acted = true;
    if (std::byte* to = direct_word(signal, peer)) [[likely]]
      return raise(to, std::uint64_t(value), op);
    check_one("signal", signal.size(), where);
    signal_checked({signal.local(), std::uint64_t(value), op}, peer, where);
  }
  /// Returns the value of this rank's signal. Acquire: data that was put with the returned value is visible. Counts as
  /// a poll.
  template <SignalWord S>
  S signal_fetch(Symmetric<S> signal, CallSite where = CallSite::here()) const {
    check_waitable("signal_fetch", signal, where);
    poll();
    acquires(signal);
    const S seen = detail::load_word(signal.local());
    polled("signal_fetch", signal.local(), rank_, seen, where);
    return seen;
  }
  /// Returns the value as signal_fetch does, but does not count as a poll: it checks neither failures nor deadlines and
  /// never ends a loop. For callers that look at many signals and poll only one of them, or wait.
  template <SignalWord S>
  S signal_seen(Symmetric<S> signal, CallSite where = CallSite::here()) const {
    check_waitable("signal_seen", signal, where);
    acquires(signal);
    return detail::load_word(signal.local());
  }
  /// Waits until this rank's signal satisfies the comparison with `value`, and returns the value that did. Acquire. If
  /// `raised_by` names a rank, the wait throws `peer_lost` as soon as that rank has ended. Throws `timeout` after the
  /// world's timeout, and `peer_lost` when a rank has failed.
  template <SignalWord S>
  S signal_wait(Symmetric<S> signal, Comparison comparison, std::type_identity_t<S> value,
                Rank raised_by = WaitNote::anyone, CallSite where = CallSite::here()) {
    check_waitable("signal_wait", signal, where);
    return wait(signal.local(), comparison, value, "signal_wait", raised_by, where);
  }

  // Waits for and tests of variables that peers update here. Acquire, as in signal_wait.

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
  /// Variants for several variables, compared with one value or with one value each. A nonzero `skip[i]`, if given,
  /// excludes variable i. Without variables to look at, `all` is true at once and `any` returns -1. Throws
  /// `invalid_use` if there are fewer values than variables.
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
  /// Waits for at least one variable, writes the indices of all that satisfy the comparison to `places`, and returns
  /// their number: 0 only if there is no variable to wait for. test_some() does so without waiting. Throws
  /// `invalid_use` if `places` has fewer entries than there are variables.
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

  // Atomics on the first element of `at` at `peer`, from the table in kernels/atomics.def:
  //
  //   T fetch(at, peer)                                  void set(at, value, peer)
  //   T swap(at, value, peer)                            T compare_swap(at, expected, desired, peer)
  //   T fetch_inc(at, peer)                              void inc(at, peer)
  //   T fetch_add(at, value, peer)                       void add(at, value, peer)
  //   T fetch_bit_and, fetch_bit_or, fetch_bit_xor       void bit_and, bit_or, bit_xor
  //
  // The calls that return a value fetch: they return the value before the update. Each of them has a form with _nbi
  // that writes this value to its first argument: swap_nbi(before, at, value, peer). Variables are integers of 4 or 8
  // bytes; fetch, set and swap also take floating-point numbers. compare_swap stores `desired` if the variable holds
  // `expected`.

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

  // Declarations of the rank's own accesses to its memory. A simulation uses them to find accesses that race with
  // transfers; on other fabrics they cost nothing.

  /// The rank loads (stores) the elements of `array` at any time between its last wait or barrier and the next one.
  template <Transferable T>
  void reads(Symmetric<T> array, CallSite where = CallSite::here()) const {
    touches(array, Touch::loads, "loads", where);
  }
  template <Transferable T>
  void writes(Symmetric<T> array, CallSite where = CallSite::here()) const {
    touches(array, Touch::stores, "stores", where);
  }
  /// Declares accesses to memory outside the symmetric heap that transfers of this rank may still read or write.
  template <class T, std::size_t extent>
  void reads(std::span<T, extent> memory, CallSite where = CallSite::here()) const {
    touches(memory.data(), memory.size_bytes(), Touch::loads, "loads", where);
  }
  template <class T, std::size_t extent>
  void writes(std::span<T, extent> memory, CallSite where = CallSite::here()) const {
    touches(memory.data(), memory.size_bytes(), Touch::stores, "stores", where);
  }
  /// The rank has waited for these elements by other means than a Context. The values that it has seen there order
  /// later accesses as after wait_until.
  template <Transferable T>
  void acquires(Symmetric<T> array) const {
    acquired(array);
  }

  /// Orders the puts and non-fetching atomics of this context before later ones, at each peer; completes nothing.
  void fence(CallSite where = CallSite::here()) {
    release_fence();
    if (transport_) [[unlikely]]
      fence_transport(std::nullopt, where);
  }
  /// Completes all transfers of this context: puts are visible at their peers to all ranks; gets and fetched values
  /// have arrived. Waits for peers whose memory is not reachable.
  void quiet(CallSite where = CallSite::here()) {
    full_fence();
    if (transport_) [[unlikely]]
      quiet_transport(std::nullopt, where);
  }

  /// Fence and quiet for the transfers to and from one peer. Transfers to other peers may remain pending.
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

  // Direct access to the memory of peers by loads and stores.

  /// Returns true if this rank can load and store the memory of `peer`. If `peer` is another rank, transfers to it are
  /// then complete when their calls return.
  bool reaches(Rank peer) const {
    return peer == rank_ || is_direct(peer);
  }
  /// Returns the elements of `array` at `peer`. Throws `unsupported` when that peer's memory is not reachable.
  template <Transferable T>
  std::span<T> peer_array(Symmetric<T> array, Rank peer, CallSite where = CallSite::here()) const {
    return {static_cast<T*>(peer_address(array.local(), array.size(), sizeof(T), peer, where)),
            std::size_t(array.size())};
  }
  /// Returns the elements of `array` at all members of `team`, for stores to all and for combined loads. Throws
  /// `unsupported` when the memory of any member is not reachable. Valid while `team` lives.
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

  /// Closes the copy of a context in a forked child: every later call takes the checked path, which throws.
  void close_in_child() noexcept;

  detail::ContextList::iterator in_process_, in_world_;
  int exceptions_before_;
};

}  // namespace tranship
