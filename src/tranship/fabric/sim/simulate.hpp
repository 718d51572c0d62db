// simulate: runs a function as n ranks in one thread, under a scheduler that is as unhelpful as the rules allow.
//
// Puts, updates and signals arrive late, in pieces, and in any order that no fence, quiet or signal forbids; sources of
// non-blocking puts are read late; ranks run in any order. Everything follows from a seed, so a failure can be
// replayed. Behaviour that machines rarely show in tests is frequent here: a program without a needed fence, quiet or
// wait fails under some seeds, and under most of them, since the order of all accesses is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// Determines if unordered accesses end the simulation: accesses of transfers to memory on both sides, atomics and
/// signals, collective calls, frees, and accesses that ranks declare (Context::reads, Context::writes).
enum class OrderChecks : std::uint8_t { on, off };

/// Counts of a simulation.
struct SimulationReport {
  std::int64_t steps = 0;
  std::int64_t deliveries = 0;
  /// The most messages and bytes that any rank has sent to ranks whose memory it does not reach, with the heads of
  /// messages: letters of meetings, and transfers, where the peer sends the answer.
  std::int64_t messages_max = 0;
  std::int64_t bytes_max = 0;
};

struct SimulationOptions {
  int ranks = 2;
  std::uint64_t seed = 1;
  /// The kind of all peers. With reachable peers, SharedFlags and reach() load and store; transfers still arrive late.
  PeerKind peers = PeerKind::reachable;
  /// If not 0, the world has several machines with this number of ranks each; the last one may have fewer. Ranks of one
  /// machine load and store each other's memory, and transfers between them complete at once. Memory of other machines
  /// cannot be touched, and transfers to it arrive late. The order of accesses is then not checked, since the checks do
  /// not see the loads and stores that establish much of it.
  int ranks_per_host = 0;
  OrderChecks order = OrderChecks::on;
  /// A rank that dies at its step number `step` (a transfer, or a look at what it waits for).
  struct Death {
    Rank rank = 0;
    std::int64_t step = 0;
  };
  std::optional<Death> death = std::nullopt;
  /// Timeout of waits. The clock stands still until nothing more can happen; then the earliest deadline passes.
  std::int64_t timeout_ns = 60'000'000'000;
  /// The heap of each rank; as in LaunchOptions if not set.
  std::optional<std::size_t> heap_bytes = std::size_t(64) << 20;
  /// Maximum number of steps of all ranks together; exceeding it throws `timeout`.
  std::int64_t steps_max = 10'000'000;
  /// If set, holds the counts so far while the simulation runs.
  SimulationReport* so_far = nullptr;
};

namespace detail {
SimulationReport simulate(const SimulationOptions& options, FunctionRef<void(World&)> body);
}

/// Runs `f(World&)` as simulated ranks and returns the counts. Throws the error of the first rank that failed: an Error
/// with the seed appended to its message, or an exception of the program's own unchanged. Throws `invalid_use` for less
/// than 1 rank. The ranks share the calling thread, so they may wait for each other only through their World.
template <class F>
SimulationReport simulate(const SimulationOptions& options, F&& f) {
  return detail::simulate(options, [&f](World& world) { f(world); });
}

}  // namespace tranship
