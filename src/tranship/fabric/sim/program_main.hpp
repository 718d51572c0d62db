// Private: ProgramMain: the main() of a program that joins a world by a call, so that a simulation can run it once for
// each rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/base/error.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

/// The main() of this program, and its command line. The constructor throws `unsupported` if the program has no symbol
/// `main` because it has been stripped.
class ProgramMain {
 public:
  ProgramMain();
  /// Runs main() with a copy of its words, and returns its result.
  int run() const;

 private:
  using Main = int (*)(int, char**, char**);

  Main main_;
  std::vector<std::string> words_;
};

/// A simulated rank whose main() runs or is about to, and its error if it has called RankScope::fail.
struct SimulatedPart {
  World* world = nullptr;
  std::optional<Error> failure = std::nullopt;
};

/// Returns the rank whose main() has begun and which has not joined yet, once; otherwise nullptr.
SimulatedPart* take_simulated_part() noexcept;

/// Returns true if such a rank has yet to join: thread-local state about a rank then belongs to another one.
bool begins_as_simulated() noexcept;

/// In a process that simulate_program() has started: runs main() as the ranks of simulated worlds, then ends the
/// process.
[[noreturn]] void simulate_main();

}  // namespace tranship
