// Private: Starts a program as the ranks of one world: what `tranship launch` does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tranship/base/callback.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/processes/passed_signal.hpp>

namespace tranship {

class RankScope;

/// A program, a path or a name to be found in PATH, with its arguments, and how many ranks run it.
struct ProgramPart {
  int ranks = 1;
  std::vector<std::string> words;
};

struct ProgramLaunchOptions {
  /// What each rank's symmetric heap may grow to; as LaunchOptions say.
  std::optional<std::size_t> heap_bytes = std::nullopt;
  /// How long the others have to end when one has failed, or all when they are interrupted; then they are killed.
  std::int64_t grace_ns = 10'000'000'000;
  /// Told once, when a tenth of that has passed, which ranks have not ended; on the calling thread.
  Callback<void(const std::string&)> notice = {};
  /// Called some 50 times a second: a signal that the caller has got since. The first one is passed on to the ranks,
  /// which have `grace_ns` to end; at the second one they are killed.
  Callback<PassedSignal()> signal_check = {};
};

struct ProgramResult {
  /// By rank; of one that was killed 128 and the number of the signal, of one that could not be run 127.
  std::vector<int> exit_codes;
  /// The rank that failed first, and why; -1 when none has.
  Rank failed = -1;
  std::string reason;
  /// Which ranks were killed since they had not ended in time, and what they were doing: "rank 1 (process 77, stopped
  /// by a signal): not ended within 10 s of that, and killed"; "" when there are none.
  std::string late;
  /// With which a rank has ended all of them (World::global_exit).
  std::optional<int> exit_status = std::nullopt;
};

/// Runs programs as the processes of one world, the ranks of the first one first; each process becomes a rank when it
/// calls launch(f). Returns when all have ended. Nothing is left of them, however they end: they die with the
/// caller, and the memory that they share has no name. Call it while this process has one thread. Throws `invalid_use`
/// for less than 1 rank or no program, `no_memory`; `unsupported` in a process that mpirun or srun has started as one
/// of several, unless TRANSHIP_SEPARATE_WORLDS=1 says that each of them is to do this.
ProgramResult launch_program(const ProgramLaunchOptions& options, const std::vector<ProgramPart>& programs);

/// Joins the world that launch_program has started this process for; empty where it has not. Programs that this one
/// starts afterwards are no ranks. Throws `bad_text`, `mismatch` where another build has started it, `invalid_use`.
std::optional<RankScope> join_program();

}  // namespace tranship
