// Shmem, one rank's part in symmetric memory as OpenSHMEM and NVSHMEM see it: objects are named by this rank's own
// addresses, and teams by small numbers. Python and functions that Numba has compiled call it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tranship/base/strided_view.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/team.hpp>

#include "rank_handle.hpp"

namespace tranship::python {

class Shmem final : public Resident {
 public:
  /// Collective over the world: makes the teams that everybody has. The calling thread's, from now on. Throws
  /// `invalid_use` in another thread than that of the rank.
  static std::shared_ptr<Shmem> begin(const std::shared_ptr<RankHandle>& rank);
  ~Shmem() override;

  RankHandle& rank() const { return *rank_; }
  const std::shared_ptr<RankHandle>& rank_handle() const { return rank_; }
  World& world() const { return rank_->world(); }
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
  /// Throws `invalid_use` for a team that everybody has, or none.
  void remove(int number);

  void leave() noexcept override;
  /// From now on the child of a fork is no rank.
  static void end_in_children();
  bool is_over() const noexcept { return teams_.empty(); }

  /// The one of the calling thread. Throws `invalid_use` where there is none.
  static Shmem& of_this_thread();
  static Shmem* of_this_thread_if_any() noexcept { return current_; }
  /// The context of the calling thread's rank, where all its transfers are complete when their calls return; nullptr
  /// elsewhere.
  static Context* direct_of_this_thread() noexcept { return direct_; }
  /// What the calling thread's puts need that compiled code makes itself; nullptr where it calls. Its distance, in
  /// bytes, from where the thread pointer points to, which is the same in all threads.
  static std::ptrdiff_t direct_from_thread_pointer() noexcept;

 private:
  explicit Shmem(std::shared_ptr<RankHandle> rank) : rank_(std::move(rank)) {}

  std::shared_ptr<RankHandle> rank_;
  std::vector<std::optional<Team>> teams_;  // by number
  bool is_in_any_heap(const void* address) const;

  void make_current(Context* direct) noexcept;
  static void make_none_current() noexcept;

  // Read by every call of compiled code; three words of the little room that the loader keeps for such variables.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Shmem* current_;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Context* direct_;
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const detail::DirectTransfers* direct_transfers_;
};

/// Views of a transfer: equal extents, or as many elements as the smaller one has.
struct MatchedViews {
  StridedView target;
  StridedView source;
};
/// NVSHMEM's "smaller size wins" for elements that lie in one row; otherwise extents must be equal, and types always.
/// Throws `invalid_use`.
MatchedViews matched(const StridedView& target, const StridedView& source);

/// The same elements at a peer, to be loaded and stored. Throws `unsupported` where its memory is not reachable, and
/// `invalid_use` for what is not symmetric.
StridedView at_peer(Context& rma, StridedView view, Rank peer, CallSite where);

/// The same elements at all members of a team: those of member m begin m * stride_bytes behind those of the first one.
struct MulticastView {
  StridedView first;
  std::int64_t stride_bytes = 0;
  int members = 0;
};
/// Throws as at_peer does, for any of them, and `unsupported` where they do not begin at equal steps.
MulticastView at_members(Context& rma, const Team& team, const StridedView& view, CallSite where);

enum class CollectiveKind : std::int32_t { reduce, reducescatter, fcollect, broadcast, alltoall };
/// Collective. The sizes follow NVSHMEM: of what is reduced, spread or exchanged the smaller one counts, a
/// reducescatter's target says how much every member gets, and the source of an fcollect how much it gives.
void run_collective(CollectiveKind kind, Team& team, const StridedView& target, const StridedView& source,
                    Reduction reduction, int root, CallSite where);

/// NVSHMEM's numbers.
SignalOp shmem_signal_op(int number);
Comparison shmem_comparison(int number);

/// Addresses of the C functions that compiled code calls, and of the variables that it reads, by name.
nanobind::dict compiled_functions();
/// The names of what these functions take as numbers.
void add_compiled_names(nanobind::module_& module);
template <std::size_t count>
nanobind::tuple names_of(const char* const (&names)[count]) {
  nanobind::list out;
  for (const char* name : names) out.append(name);
  return nanobind::tuple(out);
}

}  // namespace tranship::python
