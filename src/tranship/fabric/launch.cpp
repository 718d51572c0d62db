#include "tranship/fabric/launch.hpp"

#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/processes/process_group.hpp>
#include <tranship/fabric/processes/processes_fabric.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/seam/backends.hpp>
#include <tranship/fabric/seam/run_rank.hpp>
#include <tranship/fabric/sim/simulate_program.hpp>
#include <tranship/fabric/threads/threads_fabric.hpp>

namespace tranship::detail {
namespace {

void check_ranks(const LaunchOptions& options) {
  if (options.ranks < 1) throw_error(ErrorCode::invalid_use, "launch needs at least 1 rank, got {}", options.ranks);
}
SharedWorld::Making making_of(const LaunchOptions& options) {
  return {.ranks = options.ranks, .heap_bytes = options.heap_bytes, .teams = options.teams_max};
}
std::int64_t timeout_of(const LaunchOptions& options) {
  return options.timeout_ns ? *options.timeout_ns : default_timeout_ns();
}

}  // namespace

void launch_ranks(const LaunchOptions& options, FunctionRef<void(World&)> body) {
  check_ranks(options);
  const std::int64_t timeout_ns = timeout_of(options);
  const Pinning pinning = resolved(options.pinning);
  const auto shared = SharedWorld::make(making_of(options), SharedWorld::Kind::threads);
  Board& board = shared->board();

  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(options.ranks));
  std::vector<std::thread> threads;
  threads.reserve(thrown.size());
  for (Rank rank = 0; rank < options.ranks; ++rank) {
    try {
      threads.emplace_back([&, rank] {
        pin_rank(pinning, rank, options.ranks);
        const auto make = [&] { return std::make_unique<ThreadsFabric>(shared, rank); };
        thrown[static_cast<std::size_t>(rank)] = run_rank(board, rank, timeout_ns, make, body);
      });
    } catch (const std::system_error& error) {
      // The ranks that run wait for this one, so it is posted as failed.
      const Error refused = make_error(ErrorCode::no_memory, "cannot start the thread of rank {} of {}: {}{}", rank,
                                       options.ranks, error.what(), limits_of_processes());
      board.post_failed(rank, refused.code(), refused.what());
      thrown[static_cast<std::size_t>(rank)] = std::make_exception_ptr(refused);
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();

  const Rank first = board.first_failed();
  if (first < 0) return;
  try {
    std::rethrow_exception(thrown[static_cast<std::size_t>(first)]);
  } catch (Error& error) {
    error.rank = first;
    throw;
  }
}

void launch_processes(const LaunchOptions& options, FunctionRef<void(World&)> body) {
  check_ranks(options);
  if (const std::optional<Backend> chosen = chosen_backend()) return chosen->launch(options, body);
  const std::int64_t timeout_ns = timeout_of(options);
  const Pinning pinning = resolved(options.pinning);
  const auto shared = SharedWorld::make(making_of(options), SharedWorld::Kind::processes);
  ProcessGroup::End end;
  std::exception_ptr interrupt;
  {
    ProcessGroup group(shared);
    for (Rank r = 0; r < options.ranks; ++r)
      group.start([&](Rank rank) {
        pin_rank(pinning, rank, options.ranks);
        const auto make = [&] { return std::make_unique<ProcessesFabric>(shared, rank); };
        return run_rank(shared->board(), rank, timeout_ns, make, body) ? 1 : 0;
      });
    const auto interrupted = [&] {
      try {
        options.interrupt_check();
      } catch (...) {
        if (!interrupt) interrupt = std::current_exception();
        return PassedSignal{SIGINT};
      }
      return PassedSignal();
    };
    Callback<PassedSignal()> check;
    if (options.interrupt_check != nullptr) check = interrupted;
    end = group.wait(options.grace_ns, nullptr, check);
  }
  if (interrupt) std::rethrow_exception(interrupt);
  const Rank first = shared->board().first_failed();
  if (first < 0 || end.exit_status == 0) return;
  Error error(shared->board().failure_code_of(first),
              shared->board().failure_of(first) + (end.late.empty() ? "" : "; " + end.late));
  error.rank = first;
  throw error;
}

void launch_this(FunctionRef<void(World&)> body) {
  if (std::getenv(simulation_variable) != nullptr) return simulate_seeds(body);
  RankScope scope = RankScope::join();
  const Rank rank = scope.world().rank();
  try {
    if (const std::exception_ptr thrown = run_in(scope, body)) std::rethrow_exception(thrown);
  } catch (Error& error) {
    error.rank = rank;
    throw;
  }
}

}  // namespace tranship::detail
