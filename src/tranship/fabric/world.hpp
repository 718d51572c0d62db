// Detail: World: one rank's view of all ranks that run together: who am I, how many are we, whom can I reach, wait for
// me.
//
// Every wait has a deadline; none hangs silently. A wait fails with `timeout` (the message says who waits on what,
// since when, and what all others are doing), or with `peer_lost` as soon as a rank has failed, or has returned without
// doing what is awaited of it. A failed world can only be left: after such an error no further collective call is
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

/// The timeout of waits where nothing else is said: 60 s, or what the environment variable TRANSHIP_TIMEOUT gives:
/// seconds, or "off" for never (INT64_MAX). Throws `bad_text` for anything else.
std::int64_t default_timeout_ns();

/// Of memory that a rank asks for.
enum class MemoryContent : std::uint8_t { any, zeros };

/// Used by the thread of its rank only. It lives as long as the function that launch() runs, or as its RankScope;
/// arrays, exchanges, teams and contexts must be gone before. Calls marked collective must be made by all ranks, in the
/// same order; they wait for all ranks until the timeout, and throw `mismatch` on every rank when the calls differ,
/// `timeout` and `peer_lost`. All other calls are local and do not wait, except the waits.
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
  /// The address under which this rank can load and store what lies at `address` in the memory of `peer`, or nullptr
  /// when that peer is only messaged. Throws `invalid_use` for a rank that is not in this world.
  void* reach(Rank peer, const void* address) const;
  /// Whether peers that are reachable can reach what this rank has at `address`: anything where ranks are threads; in
  /// processes the symmetric heap and what local_memory() gives.
  bool is_exposed(const void* address) const noexcept;

  /// For people: who answers peers that are only messaged while this rank computes; empty where all are reachable.
  std::string_view progress() const noexcept;

  /// The rank that a rank of this world was launched as: another one in a sub-world.
  Rank launched_rank(Rank rank) const noexcept;

  /// Whether a rank has finished or failed. Acquire: what it wrote before is seen. Throws `invalid_use` for none.
  bool has_ended(Rank peer) const;
  /// What a rank does now, as failures report it: "running", "finished", "failed: ...", "waiting for ... for 0.2 s". A
  /// wait shows once it has lasted longer than a short spin. Throws `invalid_use` for a rank that is not in this world.
  std::string activity_of(Rank peer) const;

  /// All ranks; those that can load and store each other's memory; those of this machine. These are collective as every
  /// team is, each by itself.
  Team& team() noexcept { return team_; }
  Team& shared_team();
  Team& node_team();

  /// Collective. A barrier completes this rank's transfers of the default context and waits for all ranks: what any of
  /// them wrote or put before is seen by all after it. A sync only waits: what ranks stored is seen, puts may still be
  /// on their way. The others gather, or spread, few bytes of each rank, for set-ups.
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

  /// A power of two, up to 2 MiB: as far as the heaps of all ranks are aligned alike.
  struct Alignment {
    std::size_t bytes = 64;
  };
  /// Collective: `count` elements in the symmetric heap of every rank, all zero bits, at addresses that are multiples
  /// of 64 bytes and of the alignment on every rank; none for a count of 0. Completes the transfers of the default
  /// context, so that none comes to memory that was released; those of other contexts must be complete before. Throws
  /// `mismatch` on every rank when the calls differ; `no_memory` on every rank when any has none, or not enough for a
  /// block of 256 MiB or more, whose memory the system grants when it is touched; `invalid_use` for a
  /// negative count, for more bytes than 63 bits count, and for an alignment that is no power of two, or larger than 2
  /// MiB.
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
  /// The same for a type that is known at run time. The memory is released with its last owner; nullptr for none.
  std::shared_ptr<void> allocate(ElementType type, Index count, CallSite where = CallSite::here()) {
    return allocate_bytes(count, std::size_t(size_bytes(type)), Alignment{}.bytes, std::uint8_t(type), where);
  }
  /// Collective: as allocate, of `bytes_max` addresses, of which each rank touches and its peers reach the first
  /// `own_bytes`, which take memory. All ranks bring the same `bytes_max`.
  SymmetricArray<std::byte> allocate_uneven(std::size_t bytes_max, std::size_t own_bytes,
                                            CallSite where = CallSite::here());
  /// Collective: frees at once, after all ranks have come here. Completes the transfers of the default context, as
  /// allocate does. Throws `mismatch` when they free different ones.
  template <class T>
  void free(SymmetricArray<T> array, CallSite where = CallSite::here()) {
    free_bytes(std::move(array).take_memory(), where);
  }
  /// Collective: makes memory of the program's own symmetric, where it lies, with what it holds: as many bytes on every
  /// rank, in whole pages of base/pages.hpp. It may not be written meanwhile. What children of a fork write there is
  /// written for this rank.
  ///
  /// Throws on every rank, and leaves the memory of all as it is, when any brings what cannot be symmetric:
  /// `invalid_use` for no whole pages, for addresses where nothing is mapped or that cannot be loaded and stored, and
  /// for some that are registered already; `unsupported` for pages that can be executed, and, where ranks are
  /// processes, for memory that is shared with a file or with another process, which would see nothing of what comes
  /// there. Where ranks are threads such memory stays shared. Else as allocate.
  template <Transferable T>
  RegisteredMemory register_memory(std::span<T> memory, CallSite where = CallSite::here()) {
    return register_bytes(memory.data(), memory.size_bytes(), where);
  }
  /// Collective: the same of all static variables of the executable. Those of shared libraries are not among them.
  /// Throws `unsupported` where ranks are threads, which share theirs.
  RegisteredMemory register_statics(CallSite where = CallSite::here());
  HeapUsage heap_usage() const noexcept;
  const SymmetricHeap& heap() const noexcept { return *heap_; }

  /// The default context, in which put, get, signals and atomics are found (context.hpp).
  Context& context() noexcept { return *context_; }

  /// Memory of this rank that its peers reach where they reach any; nullptr when there is none. Aligned to 64 bytes,
  /// freed when the last copy goes, be it after the world has ended. Where ranks are threads, the pages of a large
  /// block of zeros come when they are touched, so that asking for it takes no time. Not collective.
  std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content = MemoryContent::any);

  /// Collective: `count` words for every rank, all 0. Throws `mismatch` on every rank when counts differ, `invalid_use`
  /// when `count` is less than 1. Letting go of them is not collective.
  SharedFlags shared_flags(int count, const char* label, CallSite where = CallSite::here());

  /// What waits of this rank, and loops that poll, call from its thread every hundredth of a second or so;
  /// nullptr: nothing. What it throws ends the wait as any exception of the program does:
  /// that is how a face lets Ctrl-C through. It must not call this world.
  using InterruptCheck = void (*)();
  void set_interrupt_check(InterruptCheck check) noexcept { interrupt_check_ = check; }

  /// Ends all ranks, of all machines and of the outermost world, with the low 8 bits of `status`; of several calls the
  /// first counts. What the streams of stdio hold is written (that of std::cout, too, unless the program has parted
  /// them by sync_with_stdio); nothing is destroyed, and no handler of std::atexit is called. Where ranks are threads
  /// or simulated, their one process ends. Where they are processes, the others end when they next wait, poll, or leave
  /// the world; those that have not within a quarter of a second are killed by what has launched them, and `tranship
  /// launch` ends with this status. launch_processes() returns where it is 0, and throws where it is not.
  [[noreturn]] void global_exit(int status);

  /// Throws `peer_lost` with its reason when a rank has failed. For those who wait by other means than these.
  void check_failed() const;
  /// The same for loops that poll by other means (SharedFlags): `note` says what they have seen. Throws as polls of a
  /// Context do (context.hpp). Returns how many looks of the loop may pass until the next call.
  int look(const WaitNote& note);

  /// The list of what waits and polls of this rank move on: that of the outermost world.
  UnderWay& under_way() noexcept { return *under_way_; }

  /// For interpreters, whose exceptions are not seen on their way: this rank is about to leave as failed. What it has
  /// in flight is withdrawn as by an exception, in this world and in those that it is part of.
  void set_failing() noexcept;
  /// Whether what has begun while so many exceptions were on their way is ended by a failure: it is abandoned, not
  /// completed.
  bool is_failing_since(int exceptions_before) const noexcept;

  /// Throws `invalid_use` in a child that the rank has forked, which is no rank. So does every call that acts for the
  /// rank: transfers, waits, exchanges, and all that is collective.
  void check_process() const { process_.check(rank()); }

  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }
  /// For later waits of this rank; INT64_MAX is never.
  void set_timeout_ns(std::int64_t timeout_ns) noexcept { timeout_ns_ = timeout_ns; }
  /// Now plus the timeout.
  Deadline deadline() const noexcept { return Deadline::after_ns(timeout_ns_); }
  /// Returns true when the deadline has passed, in the time of the back-end.
  bool has_passed(Deadline deadline);

  /// Waits until `ready()` is true, calling it from this thread: spinning, then yielding, then sleeping for up to 1 ms.
  /// When `ready()` is true before the call, this costs the one call. `ready` may itself make progress; what it throws
  /// passes through. What is under way moves on after each call that gives false. It is called once more after a
  /// failure has been seen: what is true is never reported as failed.
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

  /// For transports: a poll whose answer is waited for remains a poll.
  template <class Ready>
  void wait_for_answer(Ready&& ready, const WaitNote& note) {
    check_process();
    if (!ready()) wait_within_poll(ready, note, deadline());
  }

  /// Waits until a word is `at_least` that value (acquire). Where the note names no rank, the owner of the word is
  /// meant to raise it.
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
  /// A team of which every rank says its own members, which has a predefined slot in the whole world.
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
  int waits_ = 0;  // that call this: polls of their conditions have their deadlines
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
