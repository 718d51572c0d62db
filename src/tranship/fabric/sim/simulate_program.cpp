#include "tranship/fabric/sim/simulate_program.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/processes/process_group.hpp>
#include <tranship/fabric/seam/run_rank.hpp>
#include <tranship/fabric/sim/simulate.hpp>

namespace tranship {
namespace {

/// Lies in the heap of a shared world whose only rank is the program, and whose board holds its failure.
struct Seeds {
  std::uint64_t size_bytes;  // in a program of another build, the rest may differ
  SimulatedProgramOptions options;
  std::int64_t seen;
  std::int64_t begun;
};

Seeds& seeds_of(const SharedWorld& shared) {
  return *reinterpret_cast<Seeds*>(shared.heap_of(0));
}

}  // namespace

SimulatedProgramResult simulate_program(const SimulatedProgramOptions& options,
                                        const std::vector<std::string>& program) {
  if (options.ranks < 1 || options.seeds < 1 || program.empty())
    throw_error(ErrorCode::invalid_use,
                "simulate needs a program, at least 1 rank and at least 1 seed, got {}, {} and {}",
                amount(program.size(), "word"), amount(options.ranks, "rank"), amount(options.seeds, "seed"));
  default_timeout_ns();  // the program reads it; errors in it are found before it starts
  const auto shared = std::make_shared<SharedWorld>(SharedWorld::Shape{.ranks = 1, .heap_bytes = sizeof(Seeds)},
                                                    SharedWorld::Kind::processes);
  shared->obtain(0, 0, sizeof(Seeds)).value();
  Seeds& seeds = seeds_of(*shared);
  seeds.size_bytes = sizeof(Seeds);
  seeds.options = options;
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  ProcessGroup group(shared);
  group.start([&](Rank) {
    fcntl(shared->descriptor(), F_SETFD, 0);
    setenv(simulation_variable, std::to_string(shared->descriptor()).c_str(), 1);
    execvp(words[0], words.data());
    shared->board().post_failed(0, ErrorCode::io, fmt::format("cannot run '{}': {}", program[0], std::strerror(errno)));
    return 127;
  });
  SimulatedProgramResult result{.exit_code = group.wait().exit_codes[0], .seen = seeds.seen};
  if (shared->board().first_failed() < 0) return result;
  result.reason = shared->board().failure_of(0);
  if (seeds.begun > seeds.seen) result.failed_seed = options.first_seed + std::uint64_t(seeds.seen);
  return result;
}

void detail::refuse_to_be_simulated(std::string_view way) {
  if (std::getenv(simulation_variable) != nullptr)
    throw_error(ErrorCode::unsupported,
                "this program joins a world {}, together with other programs, but a simulation starts only one: call "
                "launch(f), or join without naming a world",
                way);
}

void detail::simulate_seeds(FunctionRef<void(World&)> body) {
  const char* text = std::getenv(simulation_variable);
  int descriptor = -1;
  if (std::sscanf(text, "%d", &descriptor) != 1)
    throw_error(ErrorCode::bad_text, "{} is '{}': needs a descriptor", simulation_variable, text);
  // Programs that this process starts are not simulated, nor is a second world in this process.
  unsetenv(simulation_variable);
  SharedWorld shared(descriptor);
  Seeds& seeds = seeds_of(shared);
  if (seeds.size_bytes != sizeof(Seeds))
    throw_error(ErrorCode::mismatch, "this program takes {} bytes for its seeds, the one that has started it {}",
                sizeof(Seeds), seeds.size_bytes);
  if (shared.board().joined(0))
    throw_error(ErrorCode::invalid_use, "a program that is simulated has started another one that launches");
  SimulationOptions options{.ranks = seeds.options.ranks,
                            .seed = seeds.options.first_seed,
                            .peers = seeds.options.peers,
                            .ranks_per_host = seeds.options.ranks_per_host,
                            .timeout_ns = default_timeout_ns(),
                            .heap_bytes = std::nullopt};
  shared.board().post_running(0);
  for (; seeds.seen < seeds.options.seeds; ++seeds.seen, ++options.seed) {
    ++seeds.begun;
    try {
      simulate(options, body);
    } catch (...) {
      const Error error = error_of_current_exception();
      shared.board().post_failed(0, error.code(), error.message());
      throw;
    }
  }
  shared.board().post_finished(0);
}

}  // namespace tranship
