// RankScope: one rank's part in a world, from joining it to leaving it, as an object. launch(f) holds one for as long
// as f runs; a program, or a face of another system, that begins and ends by calls of its own holds one itself.
#pragma once

#include <cstdint>
#include <memory>

#include <tranship/base/error.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// Moves, does not copy. All calls, and what lives in the world, belong to the thread that joined. Leaving is not
/// collective and does not wait for other ranks.
class RankScope {
 public:
  /// Joins the world that this process was started for: as the rank that `tranship launch` has started it as, or as the
  /// one rank of a world of its own. A process joins once; children that it starts afterwards are no ranks. Throws
  /// `unsupported` under `tranship simulate`, which runs a function many times: that takes launch(f); `mismatch` where
  /// another build has started this process.
  static RankScope join();

  /// For back-ends: joins the world whose board is `board`; `make` gives the rank's fabric. `owner` is kept until the
  /// rank has left. What `make` throws passes through, after the board has been told.
  RankScope(std::shared_ptr<void> owner, Board& board, Rank rank, std::int64_t timeout_ns,
            FunctionRef<std::unique_ptr<Fabric>()> make);
  RankScope(RankScope&&) noexcept;
  RankScope& operator=(RankScope&&) = delete;
  /// Leaves, as finish() does where no exception is on its way through here, else as fail().
  ~RankScope();

  /// Throws `invalid_use` once the rank has left.
  World& world();

  /// Leaves well: the peers see that this rank has finished. Everything that lives in the world must be gone, as when a
  /// function that launch() runs returns. Does nothing once the rank has left.
  void finish() noexcept;
  /// Leaves as failed: the peers' waits fail with this rank's name and `error`. Does nothing once the rank has left.
  void fail(const Error& error) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
