// Private: launch_program: starts a program as the ranks of one world, for `tranship launch`.
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

/// A program (a path, or a name to be found in PATH) with its arguments, and the number of its ranks.
struct ProgramPart {
  int ranks = 1;
  std::vector<std::string> words;
};

struct ProgramLaunchOptions {
  /// Maximum size of each rank's symmetric heap, as in LaunchOptions.
  std::optional<std::size_t> heap_bytes = std::nullopt;
  /// How long the other ranks have to end after one has failed, or all ranks after an interrupt; then they are killed.
  std::int64_t grace_ns = 10'000'000'000;
  /// Called once, on the calling thread, after a tenth of `grace_ns`, with the ranks that have not ended.
  Callback<void(const std::string&)> notice = {};
  /// Called about 50 times per second; returns a signal that the caller has received since. The first signal is passed
  /// on to the ranks, which have `grace_ns` to end; at the second one they are killed.
  Callback<PassedSignal()> signal_check = {};
};

struct ProgramResult {
  /// By rank. For a killed process, 128 plus the number of the signal; for a program that could not be run, 127.
  std::vector<int> exit_codes;
  /// The rank that failed first, and the reason; -1 if none failed.
  Rank failed = -1;
  std::string reason;
  /// The ranks that were killed because they had not ended in time, and their state: "rank 1 (process 77, stopped by a
  /// signal): not ended within 10 s of that, and killed"; "" if there are none.
  std::string late;
  /// The status with which a rank has ended all ranks (World::global_exit).
  std::optional<int> exit_status = std::nullopt;
};

/// Runs programs as the processes of one world; the ranks of the first program come first. Each process becomes a rank
/// when it calls launch(f). Returns when all have ended. Nothing remains of them however they end: they die with the
/// caller, and their shared memory has no name. Call it while this process has a single thread. Throws `invalid_use`
/// for less than 1 rank or no program, and `no_memory`; `unsupported` in a process that mpirun or srun has started as
/// one of several, unless TRANSHIP_SEPARATE_WORLDS=1 allows each of them to launch a world.
ProgramResult launch_program(const ProgramLaunchOptions& options, const std::vector<ProgramPart>& programs);

/// Joins the world for which launch_program() has started this process; returns nothing in any other process. Programs
/// that this process starts later are not ranks. Throws `bad_text`, `mismatch` if another build has started it, and
/// `invalid_use`.
std::optional<RankScope> join_program();

}  // namespace tranship
