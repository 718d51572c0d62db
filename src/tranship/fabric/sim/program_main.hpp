// Private: the main function of a program that joins a world by a call of its own, so that a simulation can run it once
// for each rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/base/error.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// What main() of this program is, and with which words it was started. Throws `unsupported` where the program has no
/// symbol of that name, since it was stripped.
class ProgramMain {
 public:
  ProgramMain();
  /// Returns what main() returns. What it changes in its words, it changes in a copy.
  int run() const;

 private:
  using Main = int (*)(int, char**, char**);

  Main main_;
  std::vector<std::string> words_;
};

/// A simulated rank whose main() has begun, or is about to, and what it has failed with by RankScope::fail.
struct SimulatedPart {
  World* world = nullptr;
  std::optional<Error> failure = std::nullopt;
};

/// The rank whose main() has begun and has not joined yet; nullptr where there is none. It is taken once.
SimulatedPart* take_simulated_part() noexcept;

/// Whether that rank is about to join: what the calling thread knows of a rank is of another one.
bool begins_as_simulated() noexcept;

/// In a process that simulate_program has started: runs main() as the ranks of simulated worlds, and ends the process.
[[noreturn]] void simulate_main();

}  // namespace tranship
