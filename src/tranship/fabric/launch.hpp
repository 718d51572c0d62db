// launch: runs a function on n ranks, which are threads of this process or processes of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// CPU cores on which the threads of ranks may run.
enum class Pinning : std::uint8_t {
  automatic,  ///< `node` if there are several memory nodes, else `none`; TRANSHIP_PIN (none, node, core) overrides it
  none,       ///< where the system puts them
  node,       ///< on the cores of one memory node, so that memory that a rank touches first stays near it
  core,       ///< each on one core, neighbours side by side; for ranks that have the machine to themselves
};

struct LaunchOptions {
  int ranks = 1;
  /// The ranks' initial timeout; default_timeout_ns() if not set.
  std::optional<std::int64_t> timeout_ns = std::nullopt;
  Pinning pinning = Pinning::automatic;
  /// Maximum size of each rank's symmetric heap. If not set: the value of TRANSHIP_HEAP (bytes, or with suffix K, M, G
  /// or T), else the memory of this machine, or less if the system does not grant that many addresses. Only addresses
  /// are reserved; memory is obtained at allocation.
  std::optional<std::size_t> heap_bytes = std::nullopt;
  /// Maximum number of teams at a time, including sub-worlds and three teams of the world: 4 to 32768. If not set: the
  /// value of TRANSHIP_TEAMS, else 64. Each costs 16 bytes per rank, and another kilobyte once it has been used.
  std::optional<int> teams_max = std::nullopt;
  /// Where ranks are processes: how long the other ranks have to end after one has failed. Then they are killed, and
  /// the error lists them and their state: computing, waiting, or stopped.
  std::int64_t grace_ns = 10'000'000'000;
  /// Where ranks are processes: the launching thread calls this about 50 times per second. When it throws, the ranks
  /// receive SIGINT (by sigqueue) and have `grace_ns` to end; after that, or at once if it throws again, they are
  /// killed. The launch rethrows the first exception.
  World::InterruptCheck interrupt_check = nullptr;
};

namespace detail {
void launch_ranks(const LaunchOptions& options, FunctionRef<void(World&)> body);
void launch_processes(const LaunchOptions& options, FunctionRef<void(World&)> body);
void launch_this(FunctionRef<void(World&)> body);
}  // namespace detail

/// Runs `f(World&)` on `options.ranks` new threads and blocks until all have ended. Waits of tranship end by their
/// deadlines; a rank that hangs in the program's own code blocks the launch. Costs the threads and the address space of
/// their heaps; memory is obtained at allocation. If ranks threw, rethrows the first exception with its original type
/// (an Error has Error::rank set) after all threads have ended. Throws `invalid_use` for less than 1 rank.
template <class F>
void launch(const LaunchOptions& options, F&& f) {
  detail::launch_ranks(options, [&f](World& world) { f(world); });
}

template <class F>
void launch(int ranks, F&& f) {
  launch(LaunchOptions{.ranks = ranks}, f);
}

/// Runs `f(World&)` as the rank for which this process was started by `tranship launch` or an MPI launcher. Under
/// `tranship simulate` it runs all ranks of a simulated world in turn; these share the program's static variables. A
/// process started in any other way is the only rank of its world. Exceptions of `f` pass through, after the other
/// ranks have been told. Throws as RankScope::join() does, among others `unsupported` in a process that is one of
/// several and cannot join them; use launch(1, f) to make each of these a world of its own.
template <class F>
void launch(F&& f) {
  detail::launch_this([&f](World& world) { f(world); });
}

/// Runs `f(World&)` as launch() does, in processes forked from this one: each begins with a copy of this process and
/// changes only its own. Ranks reach each other's symmetric heaps and the memory of arrays that tranship allocates. If
/// a rank dies, the others fail with its name. Throws an Error with the code, rank and message of the first rank that
/// failed; for an exception of the program's own, the code is `user_exception` and the message holds its type and text.
/// Call it while this process has a single thread: a lock held by another thread stays locked in the child.
template <class F>
void launch_processes(const LaunchOptions& options, F&& f) {
  detail::launch_processes(options, [&f](World& world) { f(world); });
}
template <class F>
void launch_processes(int ranks, F&& f) {
  launch_processes(LaunchOptions{.ranks = ranks}, f);
}

/// Returns the ranks of the world that run the same program as this process, such as the three of b in `tranship launch
/// -n 2 a : -n 3 b`. All ranks if one program was started, and where ranks are threads.
Members program_members(const World& world);

/// The environment variable that tells a process that it is a rank, "descriptor rank", and which ranks run the same
/// program, "first count".
inline constexpr const char* launch_variable = "TRANSHIP_WORLD";

}  // namespace tranship
