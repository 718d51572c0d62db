// Detail: Team: some ranks of a world that meet by themselves. Calls marked collective must be made by all members, in
// the same order; when they are not, all of them throw `mismatch`, which names both calls.
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

/// One value per rank, as bytes. Not bool, of which std::vector makes bits.
template <class T>
concept Gatherable = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_same_v<T, bool>;

/// One member's handle; copies are the same team. Letting go of it is not collective. The World must outlive it. Used
/// by the thread of its rank.
///
/// Collective calls wait for all members until the world's timeout. They throw `mismatch` on every member when the
/// calls differ, `timeout`, and `peer_lost` as soon as a member has failed. Where memory is shared, members meet by
/// words in it, and a barrier or a sync allocates nothing. The other calls are local.
class Team {
 public:
  Team(World& world, Fabric& fabric, const Members& members, int slot);

  /// This rank's place in the team, from 0.
  int rank() const noexcept;
  int size() const noexcept;
  const Members& members() const noexcept;
  World& world() const noexcept;

  /// The rank in the world of a member. Throws `invalid_use` for none.
  Rank world_rank(int member) const;
  /// The member of `other` that is member `member` of this, or -1 when it is not in there.
  int translate(int member, const Team& other) const;

  /// Collective. Completes this rank's transfers of the default context, and waits for all members. What any of them
  /// wrote or put before is seen by all after it.
  void barrier(CallSite where = CallSite::here());
  /// Collective. Waits for all members. What any of them stored before is seen by all; puts may still be on their way.
  void sync(CallSite where = CallSite::here());

  /// Collective: `size_bytes` from every member, in their order, to `all` of every member, which has room for all of
  /// them. For small data of set-ups.
  void all_gather(const void* mine, std::size_t size_bytes, void* all, CallSite where = CallSite::here());
  template <Gatherable T>
  std::vector<T> all_gather(const T& mine, CallSite where = CallSite::here()) {
    std::vector<T> all(static_cast<std::size_t>(size()));
    all_gather(&mine, sizeof(T), all.data(), where);
    return all;
  }
  /// Collective: `size_bytes` of member `root` to `data` of all others, which read nothing else. For small data of
  /// set-ups.
  void broadcast(void* data, std::size_t size_bytes, int root, CallSite where = CallSite::here());

  /// Collective: the values of all members, combined by `combine(a, b)`, which is associative and commutative: the same
  /// bytes on all members. It throws nothing. For small data of set-ups: messages grow with the logarithm of size().
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
  /// Collective over this team: members first, first + stride, ... of it. Nothing for those who are not among them.
  /// Throws `invalid_use` when they do not lie in this team, `unsupported` when there are as many teams as
  /// LaunchOptions::teams_max says.
  std::optional<Team> split_strided(const Strided& which, CallSite where = CallSite::here());
  /// Collective over this team, all of whose members bring the same list: its members `members`, in that order, at any
  /// steps. Nothing for those who are not among them. Throws what split_strided throws; `invalid_use` for an empty list
  /// and for a member that is in it twice; `mismatch` where lists differ. Transfers in a sub-world of members that lie
  /// at no equal steps take a few nanoseconds more each.
  std::optional<Team> split_listed(const std::vector<int>& members, CallSite where = CallSite::here());
  struct Split2d;
  /// Collective over this team, whose members are taken for rows of `x_size` (the last one may be shorter): the team of
  /// this member's row, and that of its column.
  Split2d split_2d(int x_size, CallSite where = CallSite::here());

  /// For collective calls that are built of these: all must bring the same `call`.
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
