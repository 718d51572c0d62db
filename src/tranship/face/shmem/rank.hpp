// Private: ShmemRank, one rank's part in symmetric memory as OpenSHMEM and NVSHMEM see it: objects are named by this
// rank's own addresses, and teams by small numbers. A thread that has begun as a rank finds it without being told
// which.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/team.hpp>

namespace tranship {

class ShmemRank {
 public:
  /// Collective over the world, which outlives it or leave(): makes the teams that every rank has, numbered as NVSHMEM
  /// numbers them.
  explicit ShmemRank(World& world, CallSite where = CallSite::here());
  ~ShmemRank();
  ShmemRank(const ShmemRank&) = delete;
  ShmemRank& operator=(const ShmemRank&) = delete;

  /// Both throw `invalid_use` once the rank has left, and in a child that it has forked.
  World& world() const;
  Context& context() const { return world().context(); }

  /// Whether an address lies in this rank's part of the symmetric heap.
  bool is_symmetric(const void* address) const;
  /// Whether a put names its source first, as some of NVSHMEM's documents do: only that one is symmetric, and the other
  /// lies in no rank's heap.
  bool is_turned(const void* target, const void* source) const;

  /// Throws `invalid_use` for a number that no team has.
  Team& team(int number);
  /// The number of a new team; -1 for none.
  int add(std::optional<Team> team);
  /// Throws `invalid_use` for a team that every rank has, or none.
  void remove(int number);

  /// The calling thread's, from now on.
  void make_current() noexcept;
  void leave() noexcept;
  bool is_over() const noexcept { return world_ == nullptr; }

  /// From now on the child of a fork is no rank.
  static void end_in_children();
  /// The one of the calling thread. Throws `invalid_use` where there is none.
  static ShmemRank& of_this_thread();
  static ShmemRank* of_this_thread_if_any() noexcept { return current_; }
  /// The context of the calling thread's rank, where all its transfers are complete when their calls return; nullptr
  /// elsewhere.
  static Context* direct_of_this_thread() noexcept { return direct_; }
  /// Where compiled code finds what it needs to make puts of the calling thread itself; it reads nullptr where it has
  /// to call. The distance in bytes from where the thread pointer points to, which is the same in all threads.
  static std::ptrdiff_t direct_from_thread_pointer() noexcept;

 private:
  bool is_in_any_heap(const void* address) const;
  static void make_none_current() noexcept;

  World* world_;
  std::vector<std::optional<Team>> teams_;  // by number

  // Read by every call of compiled code; three words of the little room that the loader keeps for such variables.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local ShmemRank* current_;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Context* direct_;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const detail::DirectTransfers* direct_transfers_;
};

}  // namespace tranship
