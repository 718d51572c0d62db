// Private: simulate_program: runs a program under many seeds, for `tranship simulate`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

struct SimulatedProgramOptions {
  int ranks = 2;
  std::uint64_t first_seed = 1;
  std::int64_t seeds = 1000;
  PeerKind peers = PeerKind::reachable;
  int ranks_per_host = 0;  ///< as in SimulationOptions
};

struct SimulatedProgramResult {
  /// Exit code of the program; 128 plus the number of the signal if it was killed, 127 if it could not be run.
  int exit_code = 0;
  /// Number of seeds under which all ranks ended without an error.
  std::int64_t seen = 0;
  /// The reason of a failure, else empty; and the seed, if its ranks had begun.
  std::string reason;
  std::optional<std::uint64_t> failed_seed;
};

/// Runs `program` (a path, or a name to be found in PATH, with its arguments) as one process. When it calls launch(f),
/// that simulates f as `ranks` ranks under one seed after the other and throws the first Error. Ranks share the
/// program's static variables, which keep their values from seed to seed. Returns when the process has ended; it dies
/// with the caller, and has 10 s to end once a seed has failed. Call it while this process has a single thread. Throws
/// `invalid_use` for less than 1 rank or seed, or no program.
SimulatedProgramResult simulate_program(const SimulatedProgramOptions& options,
                                        const std::vector<std::string>& program);

/// The environment variable that tells a process that launch(f) must simulate; its value is a descriptor.
inline constexpr const char* simulation_variable = "TRANSHIP_SIMULATION";

namespace detail {
/// Simulates all seeds, in the process that simulate_program() has started.
void simulate_seeds(FunctionRef<void(World&)> body);
/// Throws `unsupported` in such a process, for a way to join ("by its id") that needs other processes.
void refuse_to_be_simulated(std::string_view way);
}  // namespace detail

}  // namespace tranship
