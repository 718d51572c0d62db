// launch: runs a function as n ranks: threads of this process, or processes of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// Where the threads of ranks may run.
enum class Pinning : std::uint8_t {
  automatic,  ///< by memory node where there are several, else none; TRANSHIP_PIN (none, node, core) overrides it
  none,       ///< wherever the system puts them
  node,       ///< on the cores of one memory node, so that what a rank touches first stays near it
  core,       ///< on one core, neighbours side by side; for ranks that have the machine to themselves
};

struct LaunchOptions {
  int ranks = 1;
  /// The ranks' timeout at the start; default_timeout_ns() where there is none.
  std::optional<std::int64_t> timeout_ns = std::nullopt;
  Pinning pinning = Pinning::automatic;
  /// What each rank's symmetric heap may grow to. Where there is none, what TRANSHIP_HEAP gives (bytes, or with K, M, G
  /// or T), else the memory of this machine, or less where the system does not grant so many addresses. Addresses only:
  /// memory is obtained when it is allocated.
  std::optional<std::size_t> heap_bytes = std::nullopt;
  /// How many teams can exist at a time, sub-worlds and three of the world among them: 4 to 32768. Where nothing is
  /// said, what TRANSHIP_TEAMS gives, else 64. Each costs 16 bytes a rank, and a kilobyte more once it has been used.
  std::optional<int> teams_max = std::nullopt;
  /// Where ranks are processes: how long the others have to end when one has failed. Then they are killed, and the
  /// error says which they were and what they did: computing, waiting, or stopped.
  std::int64_t grace_ns = 10'000'000'000;
  /// Where ranks are processes: called some 50 times a second by the thread that launches. When it throws, the ranks
  /// are sent a SIGINT (by sigqueue) and have `grace_ns` to end; they are killed then, or at once when it throws again.
  /// The launch throws what it threw first.
  World::InterruptCheck interrupt_check = nullptr;
};

namespace detail {
void launch_ranks(const LaunchOptions& options, FunctionRef<void(World&)> body);
void launch_processes(const LaunchOptions& options, FunctionRef<void(World&)> body);
void launch_this(FunctionRef<void(World&)> body);
}  // namespace detail

/// Runs `f(World&)` on `options.ranks` new threads and blocks until all have ended. Waits of tranship end by their
/// deadlines; a rank that hangs in code of its own holds this up. Costs the threads and the address space of their
/// heaps; memory is obtained by allocations. If ranks threw, rethrows what the first of them threw, of whatever type
/// (an Error with Error::rank set), after all threads have ended. Throws `invalid_use` for less than 1 rank.
template <class F>
void launch(const LaunchOptions& options, F&& f) {
  detail::launch_ranks(options, [&f](World& world) { f(world); });
}

template <class F>
void launch(int ranks, F&& f) {
  launch(LaunchOptions{.ranks = ranks}, f);
}

/// Runs `f(World&)` as the rank that `tranship launch`, or a launcher of MPI, has started this process as; where
/// `tranship simulate` has started it, as all ranks of one simulated world after the other, which share what is static
/// in this program; in a process that was started in another way, as the one rank of a world. What it throws passes
/// through, and has told the others. Throws as RankScope::join() does, `unsupported` in a process that is one of
/// several and cannot join them: launch(1, f) says that each of them is to be a world of its own.
template <class F>
void launch(F&& f) {
  detail::launch_this([&f](World& world) { f(world); });
}

/// Like launch(), in processes that are forked from this one: each begins with a copy of all that this one has, and
/// what it changes there is its own. Ranks reach each other's symmetric heaps and the memory of arrays that tranship
/// allocates. A rank that dies makes the others fail with its name. Throws an Error with code, rank and message of the
/// first rank that failed; of an exception of the program's own the message has type and text, with code
/// `user_exception`. Call it while this process has one thread: forking others' locks is how forks hang.
template <class F>
void launch_processes(const LaunchOptions& options, F&& f) {
  detail::launch_processes(options, [&f](World& world) { f(world); });
}
template <class F>
void launch_processes(int ranks, F&& f) {
  launch_processes(LaunchOptions{.ranks = ranks}, f);
}

/// The ranks of the world that run the same program as this process: those between the colons of
/// `tranship launch -n 2 a : -n 3 b`; all ranks where one program has been started, and where ranks are threads.
Members program_members(const World& world);

/// The variable of the environment by which a process learns that it is a rank: "descriptor rank", and which ranks run
/// the same program: "first count".
inline constexpr const char* launch_variable = "TRANSHIP_WORLD";

}  // namespace tranship
