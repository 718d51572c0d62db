// Private: Runs a program under many seeds: what `tranship simulate` does.
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
  int ranks_per_host = 0;  ///< as SimulationOptions say
};

struct SimulatedProgramResult {
  /// That of the program; 128 and the number of the signal when it was killed, 127 when it could not be run.
  int exit_code = 0;
  /// Seeds under which its ranks ended well.
  std::int64_t seen = 0;
  /// Why it failed, empty when it has not; and the seed, when its ranks had begun.
  std::string reason;
  std::optional<std::uint64_t> failed_seed;
};

/// Runs `program`, a path or a name to be found in PATH, and its arguments as one process. When it calls launch(f),
/// that simulates f as so many ranks under one seed after the other and throws the first Error. What is static in the
/// program is shared by its ranks and kept from seed to seed. Returns when the process has ended; it dies with the
/// caller, and has 10 s to end once a seed has failed. Call it while this process has one thread. Throws `invalid_use`
/// for less than 1 rank or seed, or no program.
SimulatedProgramResult simulate_program(const SimulatedProgramOptions& options,
                                        const std::vector<std::string>& program);

/// The variable of the environment by which a process learns that launch(f) is to simulate: a descriptor.
inline constexpr const char* simulation_variable = "TRANSHIP_SIMULATION";

namespace detail {
/// As the process that simulate_program has started.
void simulate_seeds(FunctionRef<void(World&)> body);
/// Throws `unsupported` in such a process: it joins a world in a way that needs other processes, "by its id".
void refuse_to_be_simulated(std::string_view way);
}  // namespace detail

}  // namespace tranship
