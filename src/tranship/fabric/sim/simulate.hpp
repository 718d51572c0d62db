// simulate: runs a function as n ranks in one thread, under a scheduler that is as unhelpful as the rules allow.
//
// Puts, updates and signals arrive late, in pieces and in any order that no fence, quiet or signal forbids; sources of
// non-blocking puts are read late; ranks run in any order. All of it follows from a seed, so a failure can be replayed.
// What machines never do in a test, but may in use, is done here on purpose: programs in which a fence, a quiet or a
// wait is missing fail under some seeds, and under most of them already because the order of all accesses is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// Whether accesses that no order holds apart end the simulation: those of transfers to memory of both sides, atomics
/// and signals, collective calls, frees, and what ranks declare of their own (Context::reads, Context::writes).
enum class OrderChecks : std::uint8_t { on, off };

/// What a simulation did.
struct SimulationReport {
  std::int64_t steps = 0;
  std::int64_t deliveries = 0;
  /// The most that any rank has sent to ranks whose memory it does not reach, the heads of messages included: letters
  /// of meetings, and transfers, where what comes back is sent by the peer.
  std::int64_t messages_max = 0;
  std::int64_t bytes_max = 0;
};

struct SimulationOptions {
  int ranks = 2;
  std::uint64_t seed = 1;
  /// The kind of all peers: reachable ones let SharedFlags and reach() load and store; transfers are late all the same.
  PeerKind peers = PeerKind::reachable;
  /// Where it is not 0, the world has several machines with so many ranks each, the last one perhaps with less. Ranks
  /// of one machine load and store each other's memory, and transfers between them are complete at once; the memory of
  /// other machines cannot be touched, and what goes there comes late. The order of accesses is not checked then, since
  /// loads and stores hold much of it that the checks do not see.
  int ranks_per_host = 0;
  OrderChecks order = OrderChecks::on;
  /// A rank that dies at its so-manieth step (a transfer, or a look at what it waits for).
  struct Death {
    Rank rank = 0;
    std::int64_t step = 0;
  };
  std::optional<Death> death = std::nullopt;
  /// For waits, on a clock that stands still until nothing can happen any more: then the earliest deadline passes.
  std::int64_t timeout_ns = 60'000'000'000;
  /// The heap of each rank; as LaunchOptions say where there is none.
  std::optional<std::size_t> heap_bytes = std::size_t(64) << 20;
  /// The steps of all ranks together; more is a failure.
  std::int64_t steps_max = 10'000'000;
  /// Has what the simulation has done so far, while it runs.
  SimulationReport* so_far = nullptr;
};

namespace detail {
SimulationReport simulate(const SimulationOptions& options, FunctionRef<void(World&)> body);
}

/// Throws what the first rank that failed has thrown: an Error with the seed at the end of its message, or an exception
/// of the program's own as it is. The ranks share the calling thread; they may wait for each other only through their
/// World.
template <class F>
SimulationReport simulate(const SimulationOptions& options, F&& f) {
  return detail::simulate(options, [&f](World& world) { f(world); });
}

}  // namespace tranship
