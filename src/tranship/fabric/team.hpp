// Detail: Team: some ranks of a world that meet on their own. All members must make the calls marked collective, in the
// same order; if calls differ, all members throw `mismatch`, which names both calls.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/seam/members.hpp>

namespace tranship {

class Fabric;
class World;
struct Call;

/// A value that ranks exchange as bytes. bool is excluded because std::vector<bool> stores bits.
template <class T>
concept Gatherable = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_same_v<T, bool>;

/// One member's handle; copies refer to the same team. Releasing it is not collective. The World must outlive it. Used
/// by the thread of its rank.
///
/// Collective calls wait for all members until the world's timeout. They throw `mismatch` on every member when the
/// calls differ, `timeout`, and `peer_lost` as soon as a member has failed. Where memory is shared, members meet by
/// words in it, and barrier() and sync() allocate nothing. All other calls are local.
class Team {
 public:
  Team(World& world, Fabric& fabric, const Members& members, int slot);

  /// This rank's number in the team, from 0.
  int rank() const noexcept;
  int size() const noexcept;
  const Members& members() const noexcept;
  World& world() const noexcept;

  /// Returns the rank of a member in the world. Throws `invalid_use` for a number outside the team.
  Rank world_rank(int member) const;
  /// Returns the number that `member` of this team has in `other`, or -1 if it is not in that team. Throws
  /// `invalid_use` for a number outside this team.
  int translate(int member, const Team& other) const;

  /// Collective. Completes this rank's transfers of the default context, and waits for all members. Afterwards every
  /// member sees everything that any member wrote or put before.
  void barrier(CallSite where = CallSite::here());
  /// Collective. Waits for all members. Stores of any member are visible to all afterwards; puts may still be pending.
  void sync(CallSite where = CallSite::here());

  /// Collective. Gathers `size_bytes` from every member, in their order, into `all` on every member, which holds size()
  /// times as many bytes. For small set-up data.
  void all_gather(const void* mine, std::size_t size_bytes, void* all, CallSite where = CallSite::here());
  template <Gatherable T>
  std::vector<T> all_gather(const T& mine, CallSite where = CallSite::here()) {
    std::vector<T> all(static_cast<std::size_t>(size()));
    all_gather(&mine, sizeof(T), all.data(), where);
    return all;
  }
  /// Collective. Copies `size_bytes` from member `root` to `data` on all others; these read the root's data only. For
  /// small set-up data. Throws `invalid_use` for a root outside the team.
  void broadcast(void* data, std::size_t size_bytes, int root, CallSite where = CallSite::here());

  /// Collective. Returns the values of all members combined by `combine(a, b)`, which must be associative and
  /// commutative and must not throw. The result has the same bytes on all members. For small set-up data (at most
  /// record_bytes_max); the number of messages grows with the logarithm of size().
  template <Gatherable T, class Combine>
  T reduce(const Call& call, T mine, Combine&& combine, CallSite where) {
    run_reduction<T>(combine, [&](Combining combining) { reduce(call, &mine, sizeof(T), combining, where); });
    return mine;
  }
  template <Gatherable T, class Combine>
  T reduce(T mine, Combine&& combine, CallSite where = CallSite::here()) {
    run_reduction<T>(combine, [&](Combining combining) { reduce(&mine, sizeof(T), combining, where); });
    return mine;
  }

  struct Strided {
    int first = 0;
    int stride = 1;
    int count = 1;
  };
  /// Collective over this team. Makes a team of its members first, first + stride, ...; returns nothing on the others.
  /// Throws `invalid_use` when these do not lie in this team, and `unsupported` when LaunchOptions::teams_max teams
  /// exist.
  std::optional<Team> split_strided(const Strided& which, CallSite where = CallSite::here());
  /// Collective over this team; all its members pass the same list. Makes a team of the listed members, in that order;
  /// returns nothing on the others. Throws as split_strided() does, `invalid_use` for an empty list and for a member
  /// listed twice, and `mismatch` when lists differ. In a sub-world of members at unequal steps, each transfer takes a
  /// few nanoseconds more.
  std::optional<Team> split_listed(const std::vector<int>& members, CallSite where = CallSite::here());
  struct Split2d;
  /// Collective over this team. Arranges the members in rows of `x_size` (the last row may be shorter), and returns the
  /// team of this member's row (`x`) and of its column (`y`). Throws `invalid_use` for an `x_size` below 1, and
  /// `unsupported` as split_strided() does.
  Split2d split_2d(int x_size, CallSite where = CallSite::here());

  /// For collective calls that are built on teams: all members must pass the same `call`.
  void meet(const Call& call, CallSite where);
  using Combining = FunctionRef<void(void* into, const void* from)>;
  static constexpr std::size_t record_bytes_max = 256;
  void reduce(const Call& call, void* record, std::size_t size_bytes, Combining combine, CallSite where);

 private:
  friend class MeetingPoint;
  friend class SubWorld;
  friend class World;

  struct State;
  template <class T, class Combine, class Run>
  static void run_reduction(Combine&& combine, const Run& run) {
    static_assert(sizeof(T) <= record_bytes_max);
    run([&](void* into, const void* from) {
      T a, b;
      std::memcpy(&a, into, sizeof(T));
      std::memcpy(&b, from, sizeof(T));
      a = combine(a, b);
      std::memcpy(into, &a, sizeof(T));
    });
  }
  void reduce(void* record, std::size_t size_bytes, Combining combine, CallSite where);
  [[noreturn]] static void refuse_more(const World& world, int teams, CallSite where);
  int slot() const noexcept;
  std::uint64_t calls() const noexcept;
  void begin_at(std::uint64_t calls);
  void all_gather(const Call& call, const void* mine, std::size_t size_bytes, void* all, CallSite where);
  std::optional<Team> split(const std::optional<Members>& members, const Call& call, CallSite where);

  std::shared_ptr<State> state_;
};

struct Team::Split2d {
  Team x;
  Team y;
};

}  // namespace tranship
