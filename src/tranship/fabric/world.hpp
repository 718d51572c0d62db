// Detail: World: one rank's view of all ranks that run together: its own number, their count, which memory it can
// reach, and how to wait.
//
// Every wait has a deadline; none hangs silently. A wait throws `timeout` (the message says who waits for what, since
// when, and what all other ranks are doing), or `peer_lost` as soon as a rank has failed, or has returned without doing
// what the wait needs from it. After such an error a rank can only leave the world; no further collective call is
// possible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/forked.hpp>
#include <tranship/fabric/seam/members.hpp>
#include <tranship/fabric/seam/wait_note.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/team.hpp>

namespace tranship {

class Context;
class Fabric;
class Polling;
class SharedFlags;
class SymmetricHeap;
class UnderWay;

namespace detail {
class Polls;
}

/// Returns the timeout of waits where none is given: the value of the environment variable TRANSHIP_TIMEOUT in seconds,
/// or "off" for no timeout (INT64_MAX); 60 s if it is not set. Throws `bad_text` for any other text.
std::int64_t default_timeout_ns();

/// Initial content of memory that a rank requests.
enum class MemoryContent : std::uint8_t { any, zeros };

/// Used by the thread of its rank only. A World lives as long as the function that launch() runs, or as its RankScope;
/// arrays, exchanges, teams and contexts must be destroyed before it. Every rank must make the calls marked collective,
/// in the same order. They wait for all ranks until the timeout. They throw `mismatch` on every rank when the calls
/// differ, and `timeout` or `peer_lost`. All other calls are local, and only the waits wait.
class World {
 public:
  World(Fabric& fabric, std::int64_t timeout_ns);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Rank rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Throws `invalid_use` for a rank that is not in this world.
  PeerKind peer_kind(Rank peer) const;
  /// Returns the address at which this rank can load and store what lies at `address` in the memory of `peer`, or
  /// nullptr if that peer is only messaged. Throws `invalid_use` for a rank that is not in this world.
  void* reach(Rank peer, const void* address) const;
  /// Returns true if reachable peers can reach this rank's memory at `address`. Where ranks are threads this holds for
  /// all memory; where they are processes, for the symmetric heap and memory from local_memory().
  bool is_exposed(const void* address) const noexcept;

  /// For display: names who answers messaged peers while this rank computes; empty if all peers are reachable.
  std::string_view progress() const noexcept;

  /// Returns the number under which `rank` was launched. It differs from `rank` in a sub-world.
  Rank launched_rank(Rank rank) const noexcept;

  /// Returns true if a rank has finished or failed. Acquire: everything that it wrote before is visible. Throws
  /// `invalid_use` for a rank that is not in this world.
  bool has_ended(Rank peer) const;
  /// Describes what a rank does now, in the words of error messages: "running", "finished", "failed: ...", "waiting for
  /// ... for 0.2 s". A wait shows only after a short spin. Throws `invalid_use` for a rank that is not in this world.
  std::string activity_of(Rank peer) const;

  /// The team of all ranks; of the ranks that can load and store this rank's memory; of the ranks of this machine. In a
  /// sub-world, the first call of shared_team() and of node_team() is collective over the sub-world.
  Team& team() noexcept { return team_; }
  Team& shared_team();
  Team& node_team();

  /// Collective. barrier() completes this rank's transfers of the default context and waits for all ranks; afterwards
  /// every rank sees everything that any rank wrote or put before. sync() only waits: stores are visible afterwards,
  /// puts may still be pending. all_gather() and broadcast() exchange a few bytes per rank during set-up.
  void barrier(CallSite where = CallSite::here()) { team_.barrier(where); }
  void sync(CallSite where = CallSite::here()) { team_.sync(where); }
  void all_gather(const void* mine, std::size_t size_bytes, void* all, CallSite where = CallSite::here()) {
    team_.all_gather(mine, size_bytes, all, where);
  }
  template <Gatherable T>
  std::vector<T> all_gather(const T& mine, CallSite where = CallSite::here()) {
    return team_.all_gather(mine, where);
  }
  void broadcast(void* data, std::size_t size_bytes, Rank root, CallSite where = CallSite::here()) {
    team_.broadcast(data, size_bytes, root, where);
  }

  /// A power of two, at most 2 MiB: the heaps of all ranks are aligned alike up to this size.
  struct Alignment {
    std::size_t bytes = 64;
  };
  /// Collective. Allocates `count` zeroed elements in the symmetric heap of every rank, at addresses that are multiples
  /// of 64 bytes and of the alignment on every rank; an empty array for a count of 0. Completes the transfers of the
  /// default context first, so that none of them writes to memory that is reused; transfers of other contexts must be
  /// complete before the call. Throws on every rank: `mismatch` when the calls differ; `no_memory` when the heap of any
  /// rank has no room, or the system lacks memory for the blocks of all ranks. For blocks of 256 MiB or more, which the
  /// system grants page by page on first touch, it only has to have memory for one of them. Throws `invalid_use` for a
  /// negative count, for a size that exceeds 63 bits, and for an alignment that is not a power of two or exceeds 2 MiB.
  template <Transferable T>
  SymmetricArray<T> allocate(Index count, Alignment alignment, CallSite where = CallSite::here()) {
    std::shared_ptr<void> memory =
        allocate_bytes(count, sizeof(T), alignment.bytes, std::uint8_t(element_type_of<T>), where);
    T* local = static_cast<T*>(memory.get());
    return {Symmetric<T>::at(local, local ? count : 0), std::move(memory)};
  }
  template <Transferable T>
  SymmetricArray<T> allocate(Index count, CallSite where = CallSite::here()) {
    return allocate<T>(count, Alignment{}, where);
  }
  /// Allocates elements of a type that is known at run time. The memory is released with its last owner; nullptr for a
  /// count of 0.
  std::shared_ptr<void> allocate(ElementType type, Index count, CallSite where = CallSite::here()) {
    return allocate_bytes(count, std::size_t(size_bytes(type)), Alignment{}.bytes, std::uint8_t(type), where);
  }
  /// Collective. Allocates as allocate() does, but reserves `bytes_max` addresses, the same number on all ranks, while
  /// only the first `own_bytes` of a rank take memory. The rank and its peers may touch only these.
  SymmetricArray<std::byte> allocate_uneven(std::size_t bytes_max, std::size_t own_bytes,
                                            CallSite where = CallSite::here());
  /// Collective. Waits for all ranks, then frees the array at once. Completes the transfers of the default context, as
  /// allocate() does. Throws `mismatch` when ranks free different arrays.
  template <class T>
  void free(SymmetricArray<T> array, CallSite where = CallSite::here()) {
    free_bytes(std::move(array).take_memory(), where);
  }
  /// Collective. Makes the program's own memory symmetric in place and keeps its content. All ranks pass the same
  /// number of bytes, in whole pages (base/pages.hpp). Nothing may write to the memory during the call. Writes of a
  /// forked child to this memory are writes of this rank.
  ///
  /// If memory of any rank cannot be registered, the call throws on every rank and leaves all memory as it is:
  /// `invalid_use` for partial pages, for addresses that are not mapped or cannot be both loaded and stored, and for
  /// memory that is already registered; `unsupported` for executable pages and, where ranks are processes, for memory
  /// shared with a file or with another process, which would not see what peers write there. Where ranks are threads,
  /// such memory stays shared. Throws otherwise as allocate() does.
  template <Transferable T>
  RegisteredMemory register_memory(std::span<T> memory, CallSite where = CallSite::here()) {
    return register_bytes(memory.data(), memory.size_bytes(), where);
  }
  /// Collective. Registers all static variables of the executable, but none of shared libraries. Throws `unsupported`
  /// where ranks are threads, since they share their static variables; otherwise as register_memory() does.
  RegisteredMemory register_statics(CallSite where = CallSite::here());
  HeapUsage heap_usage() const noexcept;
  const SymmetricHeap& heap() const noexcept { return *heap_; }

  /// The default context, for put, get, signals and atomics (context.hpp).
  Context& context() noexcept { return *context_; }

  /// Returns memory of this rank that every reachable peer can reach, aligned to 64 bytes; nullptr when there is none.
  /// It is freed with its last copy, which may outlive the world. Where ranks are threads, the pages of a large zeroed
  /// block are obtained on first touch, so the call takes almost no time. Not collective.
  std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content = MemoryContent::any);

  /// Collective. Allocates `count` words for every rank, all 0. Throws `mismatch` on every rank when counts differ, and
  /// `invalid_use` when `count` is less than 1. Releasing them is not collective.
  SharedFlags shared_flags(int count, const char* label, CallSite where = CallSite::here());

  /// A function that this rank's waits and polling loops call from its thread about every 10 ms; nullptr for none. An
  /// exception that it throws ends the wait, as any exception of the program does; interfaces of other systems use it
  /// to let Ctrl-C through. It must not call this world.
  using InterruptCheck = void (*)();
  void set_interrupt_check(InterruptCheck check) noexcept { interrupt_check_ = check; }

  /// Ends all ranks, on all machines and in the outermost world, with the low 8 bits of `status`; the first of several
  /// calls counts. Buffers of stdio streams are flushed (that of std::cout, too, unless the program called
  /// sync_with_stdio(false)); nothing is destroyed, and no handler of std::atexit runs. Where ranks are threads or
  /// simulated, their one process ends. Where they are processes, each of the others ends when it next waits, polls or
  /// leaves the world; their launcher kills those that have not ended after 250 ms, and `tranship launch` ends with
  /// this status. launch_processes() returns if the status is 0, and throws otherwise.
  [[noreturn]] void global_exit(int status);

  /// Throws `peer_lost` with the reason when a rank has failed. For code that waits by other means than the waits here.
  void check_failed() const;
  /// The check for loops that poll by other means than a Context (SharedFlags): `note` says what they have seen. Throws
  /// as polls of a Context do (context.hpp). Returns how many polls the loop may make until the next call.
  int look(const WaitNote& note);

  /// The list of operations that waits and polls of this rank advance; sub-worlds share the list of the outermost
  /// world.
  UnderWay& under_way() noexcept { return *under_way_; }

  /// For interpreters, whose exceptions are not visible to C++: announces that this rank is about to leave as failed.
  /// Its operations in flight are withdrawn as by an exception, in this world and in the worlds around it.
  void set_failing() noexcept;
  /// Returns true if an operation that began with `exceptions_before` uncaught exceptions now ends because of a
  /// failure; it is then abandoned instead of completed.
  bool is_failing_since(int exceptions_before) const noexcept;

  /// Throws `invalid_use` in a forked child, which is not a rank. Every call that acts for the rank (transfers, waits,
  /// exchanges, all collective calls) checks this, too.
  void check_process() const { process_.check(rank()); }

  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }
  /// Sets the timeout of later waits of this rank; INT64_MAX for no timeout.
  void set_timeout_ns(std::int64_t timeout_ns) noexcept { timeout_ns_ = timeout_ns; }
  /// Returns a deadline one timeout from now.
  Deadline deadline() const noexcept { return Deadline::after_ns(timeout_ns_); }
  /// Returns true when the deadline has passed, by the clock of the back-end.
  bool has_passed(Deadline deadline);

  /// Waits until `ready()` returns true. Calls it from this thread: spinning, then yielding, then sleeping for up to 1
  /// ms. If it is true at once, the wait costs this one call. `ready` may itself make progress; its exceptions pass
  /// through. After each call that returns false, the rank's operations in flight advance. After a failure has been
  /// seen, `ready` is called once more, so that a condition that holds is never reported as failed.
  template <class Ready>
  void wait_until(Ready&& ready, const WaitNote& note) {
    check_process();
    if (!ready()) wait_longer(ready, note, deadline());
  }
  template <class Ready>
  void wait_until(Ready&& ready, const WaitNote& note, Deadline deadline) {
    check_process();
    if (!ready()) wait_longer(ready, note, deadline);
  }

  /// For transports: waits for the answer to a poll, and still counts as a poll.
  template <class Ready>
  void wait_for_answer(Ready&& ready, const WaitNote& note) {
    check_process();
    if (!ready()) wait_within_poll(ready, note, deadline());
  }

  /// Waits until a word is `at_least` the value (acquire). If the note names no rank, the owner of the word is expected
  /// to raise it.
  void wait(const SharedFlags& words, Rank rank, int index, std::uint64_t at_least, WaitNote note);
  void wait(const SharedFlags& words, Rank rank, int index, std::uint64_t at_least, WaitNote note, Deadline deadline);

 private:
  friend class Context;
  friend class KernelTeam;
  friend class MeetingPoint;
  friend class RankScope;
  friend class SharedMeeting;
  friend class SubWorld;
  friend class Team;
  friend class detail::Polls;

  class CarriedFlags;

  std::shared_ptr<void> allocate_bytes(Index count, std::size_t element_bytes, std::size_t alignment, std::uint8_t type,
                                       CallSite where);
  void free_bytes(std::shared_ptr<void> memory, CallSite where);
  RegisteredMemory register_bytes(void* memory, std::size_t size_bytes, CallSite where);
  void idle(int round);
  int spin_rounds() const noexcept;
  /// Makes a team of which each rank gives its own members; it has a predefined slot in the outermost world.
  Team predefined_team(const Members& members, int slot);

  void wait_longer(FunctionRef<bool()> ready, const WaitNote& note, Deadline deadline);
  void wait_within_poll(FunctionRef<bool()> ready, const WaitNote& note, Deadline deadline);
  void wait_for_word(const SharedFlags& words, Rank rank, int index, std::uint64_t at_least, WaitNote& note,
                     Deadline deadline);
  void check_peer(Rank peer) const;

  void check_interrupt();

  Fabric* fabric_;
  Rank rank_;
  int size_;
  detail::ProcessOfRank process_;

  std::int64_t timeout_ns_;
  InterruptCheck interrupt_check_ = nullptr;
  std::int64_t interrupt_checked_ns_ = 0;
  std::unique_ptr<Polling> polling_;
  int waits_ = 0;  // in progress: while there are any, polls belong to their conditions, which have deadlines
  std::unique_ptr<UnderWay> own_under_way_;
  UnderWay* under_way_;
  detail::ContextList contexts_;
  Team team_;
  std::optional<Team> shared_team_;
  std::optional<Team> node_team_;
  std::unique_ptr<SymmetricHeap> heap_;
  std::unique_ptr<Context> context_;
};

}  // namespace tranship
