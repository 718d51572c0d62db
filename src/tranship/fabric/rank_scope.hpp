// RankScope: one rank's membership in a world, from joining to leaving, as an object. launch(f) holds one while f runs.
// A program, or an interface of another system, that starts and ends by separate calls holds one itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <tranship/base/error.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/fabric/world_id.hpp>

namespace tranship {

class Board;
class Fabric;

struct JoinOptions {
  /// Maximum size of each rank's symmetric heap, as in LaunchOptions. Ranks that set it must agree; the others take
  /// that value.
  std::optional<std::size_t> heap_bytes = std::nullopt;
  /// How long all ranks together may take to join, and the rank's timeout afterwards; default_timeout_ns() if not set.
  /// For joining, the shortest timeout of all ranks applies.
  std::optional<std::int64_t> timeout_ns = std::nullopt;
  /// World::set_interrupt_check from the start; joining calls it, too.
  World::InterruptCheck interrupt_check = nullptr;
};

/// Movable only. All calls, and everything in the world, belong to the thread that joined. Leaving is not collective
/// and does not wait for ranks of this machine; docs/cluster.md says when it waits for ranks of other machines. In a
/// forked child, leaving does nothing.
class RankScope {
 public:
  /// Joins the world for which this process was started: as the rank that `tranship launch` assigned to it, as its
  /// process of an MPI job started by mpirun, mpiexec or srun (docs/cluster.md), or as the only rank of a new world. A
  /// process joins once; its children are not ranks. Throws `mismatch` when another build started this process, and
  /// when launcher and library belong to different MPIs. Throws `unsupported` in a process that is one of several
  /// started by srun without --mpi, or by an MPI for which there is no module here: all of them would be worlds of one
  /// rank. The environment variable TRANSHIP_SEPARATE_WORLDS=1 allows this.
  ///
  /// Under `tranship simulate` this call runs main() again, once for each rank and seed, on stacks of 1 MiB that share
  /// the program's static variables. In these runs it returns as the rank, and main() must return 0 and not call
  /// std::exit. In the original main() it does not return: it ends the process after the last seed, or after the first
  /// one that fails. Throws `unsupported` there if the program has been stripped of the symbol main.
  static RankScope join();

  /// Collective over separately started processes of one user on one machine: joins the world of `id` as rank `rank` of
  /// `size`. The process that made the id must be one of the ranks, any of them; the others may call before it. Returns
  /// when all have joined, on all ranks or on none. A process joins by an id once; it may leave and join again by
  /// another id.
  ///
  /// Until this rank leaves, a sleeping thread of this process watches some of the other ranks. When a process ends
  /// without leaving, killed or not, the waits of all others fail with its rank and process number. Forked children are
  /// not ranks and do not hide its end.
  ///
  /// Throws on all ranks that have come so far: `mismatch` when two processes give the same rank, or when sizes, heaps
  /// or builds differ; `timeout`, which names the ranks that have not joined; `peer_lost` when a process that joined,
  /// or made the id, is gone; `no_memory`. Throws on this rank alone: `invalid_use` for a rank that is not below
  /// `size`, for an id that was used before and for bytes that are not an id; `mismatch` for an id of another machine,
  /// container or user; `unsupported` under `tranship simulate`; `io`.
  static RankScope join(const WorldId& id, Rank rank, int size, const JoinOptions& options = {});

  /// For back-ends: joins the world whose board is `board`; `make` returns the rank's fabric. `owner` is kept until the
  /// rank has left. An exception of `make` passes through, after it has been posted on the board.
  RankScope(std::shared_ptr<void> owner, Board& board, Rank rank, std::int64_t timeout_ns,
            FunctionRef<std::unique_ptr<Fabric>()> make);
  RankScope(RankScope&&) noexcept;
  RankScope& operator=(RankScope&&) = delete;
  /// Leaves, as finish() does, or as fail() does if an exception is propagating.
  ~RankScope();

  /// Throws `invalid_use` once the rank has left, and in a forked child.
  World& world();

  /// Leaves normally: the peers see that this rank has finished. Everything that lives in the world must be destroyed
  /// before, as when a function of launch() returns. Does nothing once the rank has left.
  void finish() noexcept;
  /// Leaves as failed: the peers' waits fail with this rank's number and `error`. Does nothing once the rank has left.
  void fail(const Error& error) noexcept;

 private:
  explicit RankScope(struct SimulatedPart& part);

  struct State;
  /// Returns true in a forked child, whose copy of a rank has nothing to leave.
  bool is_in_child() noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace tranship
