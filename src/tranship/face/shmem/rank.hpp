// Private: ShmemRank, one rank's part in symmetric memory as OpenSHMEM and NVSHMEM see it: a call names objects by this
// rank's own addresses, and teams by small numbers. A thread that runs as a rank finds its ShmemRank without an
// argument.
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
  /// Collective over the world, which must outlive this object or its leave(). Makes the teams that every rank has,
  /// with NVSHMEM's numbers.
  explicit ShmemRank(World& world, CallSite where = CallSite::here());
  ~ShmemRank();
  ShmemRank(const ShmemRank&) = delete;
  ShmemRank& operator=(const ShmemRank&) = delete;

  /// Both throw `invalid_use` after leave(), and in a forked child.
  World& world() const;
  Context& context() const { return world().context(); }

  /// Returns true when an address lies in this rank's part of the symmetric heap.
  bool is_symmetric(const void* address) const;
  /// Returns true when a put names its source first, as some of NVSHMEM's documents do: only `source` is symmetric
  /// then, and `target` lies in no rank's heap.
  bool is_turned(const void* target, const void* source) const;

  /// Throws `invalid_use` for a number without a team.
  Team& team(int number);
  /// Returns the number of a new team; -1 for an empty optional.
  int add(std::optional<Team> team);
  /// Throws `invalid_use` for a team that every rank has, and for a number without a team.
  void remove(int number);

  /// Makes this the rank of the calling thread.
  void make_current() noexcept;
  void leave() noexcept;
  bool is_over() const noexcept { return world_ == nullptr; }

  /// After this call, the child of a fork is not a rank.
  static void end_in_children();
  /// Returns the rank of the calling thread. Throws `invalid_use` if there is none.
  static ShmemRank& of_this_thread();
  static ShmemRank* of_this_thread_if_any() noexcept { return current_; }
  /// Returns the context of the calling thread's rank if all its transfers are complete when their calls return;
  /// otherwise nullptr.
  static Context* direct_of_this_thread() noexcept { return direct_; }
  /// Returns where compiled code finds the record with which it makes puts itself, as a distance in bytes from the
  /// thread pointer, equal in all threads. The record pointer is nullptr when the code must call the library instead.
  static std::ptrdiff_t direct_from_thread_pointer() noexcept;

 private:
  bool is_in_any_heap(const void* address) const;
  static void make_none_current() noexcept;

  World* world_;
  std::vector<std::optional<Team>> teams_;  // by number

  // Every call of compiled code reads these. They take three words of the small space that the loader keeps for them.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local ShmemRank* current_;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Context* direct_;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const detail::DirectTransfers* direct_transfers_;
};

}  // namespace tranship
