#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/threads/threads_fabric.hpp>

namespace tranship::detail {
namespace {

/// Runs one rank to its end and posts how it ended; what it threw, if it did.
std::exception_ptr run_rank(ThreadsShared& shared, Rank rank, int size, Pinning pinning, std::int64_t timeout_ns,
                            FunctionRef<void(World&)> body) noexcept {
  Board& board = shared.board();
  try {
    pin_rank(pinning, rank, size);
    ThreadsFabric fabric(shared, rank);
    World world(fabric, timeout_ns);
    body(world);
    board.post_finished(rank);
    return nullptr;
  } catch (const std::exception& error) {
    board.post_failed(rank, error.what());
    return std::current_exception();
  } catch (...) {
    board.post_failed(rank, "an exception that is no std::exception");
    return std::current_exception();
  }
}

}  // namespace

void launch_ranks(const LaunchOptions& options, FunctionRef<void(World&)> body) {
  if (options.ranks < 1) throw_error(ErrorCode::invalid_use, "launch needs at least 1 rank, got {}", options.ranks);
  const std::int64_t timeout_ns = options.timeout_ns ? *options.timeout_ns : default_timeout_ns();

  const Pinning pinning = resolved(options.pinning);

  ThreadsShared shared(options.ranks);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(options.ranks));
  std::vector<std::thread> threads;
  threads.reserve(thrown.size());
  for (Rank rank = 0; rank < options.ranks; ++rank) {
    try {
      threads.emplace_back(
          [&, rank] { thrown[rank] = run_rank(shared, rank, options.ranks, pinning, timeout_ns, body); });
    } catch (const std::system_error& error) {
      // The ranks that run wait for this one: it fails in their eyes, with its name.
      const Error refused = make_error(ErrorCode::no_memory, "cannot start the thread of rank {} of {}: {}", rank,
                                       options.ranks, error.what());
      shared.board().post_failed(rank, refused.what());
      thrown[rank] = std::make_exception_ptr(refused);
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();

  const Rank first = shared.board().first_failed();
  if (first < 0) return;
  try {
    std::rethrow_exception(thrown[first]);
  } catch (Error& error) {
    error.rank = first;
    throw;
  }
}

}  // namespace tranship::detail
