// RankScope: one rank's part in a world, from joining it to leaving it, as an object. launch(f) holds one for as long
// as f runs; a program, or a face of another system, that begins and ends by calls of its own holds one itself.
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
  /// What each rank's symmetric heap may grow to, as LaunchOptions say. Ranks that say it must say the same; those that
  /// do not take what the others say.
  std::optional<std::size_t> heap_bytes = std::nullopt;
  /// How long all ranks together may take to join, and the rank's timeout afterwards; default_timeout_ns() where there
  /// is none. The shortest of all ranks holds for joining.
  std::optional<std::int64_t> timeout_ns = std::nullopt;
  /// World::set_interrupt_check, from the start: joining calls it, too.
  World::InterruptCheck interrupt_check = nullptr;
};

/// Moves, does not copy. All calls, and what lives in the world, belong to the thread that joined. Leaving is not
/// collective and does not wait for ranks of this machine; docs/cluster.md says when it waits for those of others. In a
/// child that a rank forks, leaving does nothing.
class RankScope {
 public:
  /// Joins the world that this process was started for: as the rank that `tranship launch` has started it as, as its
  /// process of the MPI job that mpirun, mpiexec or srun has started (docs/cluster.md), or as the one rank of a world
  /// of its own. A process joins once; children that it starts afterwards are no ranks. Throws `mismatch` where another
  /// build has started this process, and where launcher and library are of different MPIs; `unsupported` in a process
  /// that was started as one of several by srun without --mpi, or by an MPI that has no module here, which would all be
  /// worlds of one rank; TRANSHIP_SEPARATE_WORLDS=1 in the environment lets them be that.
  ///
  /// Under `tranship simulate` this call runs main() again, once for each rank and seed, on stacks of 1 MiB that share
  /// what is static in the program. In these calls it returns as the rank, and main() is to return 0 rather than to
  /// call std::exit. It does not return to the main() that came first: it ends the process after the last seed, or
  /// after the first one that fails. Throws `unsupported` there where the program has been stripped of the symbol main.
  static RankScope join();

  /// Collective over processes of one user on one machine that were started apart: joins the world of `id` as rank
  /// `rank` of `size`. The process that has made the id must be one of the ranks, any of them; the others may come
  /// before it. Returns when all have joined, on all ranks or on none. A process joins by an id once; it may leave and
  /// join again by another id.
  ///
  /// From then on a thread of this process, which sleeps, watches some of the other ranks until this rank leaves. When
  /// a process ends without leaving, be it killed, the waits of all others fail with its rank and process number.
  /// Children that a rank forks are no ranks and do not hide its end.
  ///
  /// Throws, on all ranks that have come so far, `mismatch` where two processes name one rank, or sizes, heaps or
  /// builds differ; `timeout`, which names the ranks that have not joined; `peer_lost` where a process that has joined,
  /// or has made the id, is gone; `no_memory`. Throws on this rank alone `invalid_use` for a rank that is not below
  /// `size`, an id that was used before and bytes that are no id; `mismatch` for an id of another machine, container or
  /// user; `unsupported` under `tranship simulate`; `io`.
  static RankScope join(const WorldId& id, Rank rank, int size, const JoinOptions& options = {});

  /// For back-ends: joins the world whose board is `board`; `make` gives the rank's fabric. `owner` is kept until the
  /// rank has left. What `make` throws passes through, after the board has been told.
  RankScope(std::shared_ptr<void> owner, Board& board, Rank rank, std::int64_t timeout_ns,
            FunctionRef<std::unique_ptr<Fabric>()> make);
  RankScope(RankScope&&) noexcept;
  RankScope& operator=(RankScope&&) = delete;
  /// Leaves, as finish() does where no exception is on its way through here, else as fail().
  ~RankScope();

  /// Throws `invalid_use` once the rank has left, and in a child that it has forked.
  World& world();

  /// Leaves well: the peers see that this rank has finished. Everything that lives in the world must be gone, as when a
  /// function that launch() runs returns. Does nothing once the rank has left.
  void finish() noexcept;
  /// Leaves as failed: the peers' waits fail with this rank's name and `error`. Does nothing once the rank has left.
  void fail(const Error& error) noexcept;

 private:
  explicit RankScope(struct SimulatedPart& part);

  struct State;
  /// Whether this is the copy that a fork has made of a rank's; then there is nothing left to leave.
  bool is_in_child() noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace tranship
