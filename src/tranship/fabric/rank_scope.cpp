#include "tranship/fabric/rank_scope.hpp"

#include <cstdlib>
#include <exception>
#include <optional>

#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/processes/other_launcher.hpp>
#include <tranship/fabric/seam/backends.hpp>
#include <tranship/fabric/seam/global_exit.hpp>
#include <tranship/fabric/seam/run_rank.hpp>
#include <tranship/fabric/sim/program_main.hpp>
#include <tranship/fabric/sim/simulate_program.hpp>
#include <tranship/fabric/threads/threads_fabric.hpp>

namespace tranship {

struct RankScope::State {
  std::shared_ptr<void> owner;
  Board& board;
  Rank rank;
  pid_t process = getpid();
  int exceptions_before = std::uncaught_exceptions();
  std::unique_ptr<Fabric> fabric = {};
  std::optional<World> world = {};
  SimulatedPart* simulated = nullptr;  // its world belongs to the simulation, and lives until its main() has returned

  World& current() noexcept { return simulated ? *simulated->world : *world; }
  void leave_world() noexcept {
    world.reset();
    fabric.reset();
  }
};

RankScope RankScope::join() {
  if (SimulatedPart* const part = take_simulated_part()) return RankScope(*part);
  if (std::getenv(simulation_variable) != nullptr) simulate_main();
  for (const Backend& backend : available_backends())
    if (backend.join != nullptr)
      if (std::optional<RankScope> joined = backend.join()) return std::move(*joined);
  refuse_other_launcher("a world of its own, of one rank");
  const auto alone = SharedWorld::make({}, SharedWorld::Kind::threads);
  return RankScope(alone, alone->board(), 0, default_timeout_ns(),
                   [&] { return std::make_unique<ThreadsFabric>(alone, 0); });
}

RankScope RankScope::join(const WorldId& id, Rank rank, int size, const JoinOptions& options) {
  detail::refuse_to_be_simulated("by its id");
  if (rank < 0 || rank >= size)
    throw_error(ErrorCode::invalid_use, "rank {} cannot join a world of {}: a rank is at least 0 and below the size",
                rank, amount(size, "rank"));
  for (const Backend& backend : available_backends())
    if (backend.join_by_id != nullptr)
      if (std::optional<RankScope> joined = backend.join_by_id(id, rank, size, options)) {
        joined->world().set_interrupt_check(options.interrupt_check);
        return std::move(*joined);
      }
  throw_error(ErrorCode::invalid_use, "these {} bytes are no world id: they begin with {:02x}{:02x}{:02x}{:02x}",
              WorldId::size_bytes, id.bytes[0], id.bytes[1], id.bytes[2], id.bytes[3]);
}

RankScope::RankScope(std::shared_ptr<void> owner, Board& board, Rank rank, std::int64_t timeout_ns,
                     FunctionRef<std::unique_ptr<Fabric>()> make)
    : state_(new State{std::move(owner), board, rank}) {
  board.post_running(rank);
  try {
    state_->fabric = make();
    state_->world.emplace(*state_->fabric, timeout_ns);
  } catch (...) {
    fail(error_of_current_exception());
    throw;
  }
}

RankScope::RankScope(SimulatedPart& part)
    : state_(new State{
          .owner = nullptr, .board = part.world->fabric_->board(), .rank = part.world->rank(), .simulated = &part}) {}

RankScope::RankScope(RankScope&&) noexcept = default;

RankScope::~RankScope() {
  if (!state_) return;
  if (std::uncaught_exceptions() > state_->exceptions_before)
    fail(make_error(ErrorCode::user_exception, "rank {} has left its world because an exception was thrown",
                    state_->rank));
  finish();
}

World& RankScope::world() {
  if (!state_) throw_error(ErrorCode::invalid_use, "the rank has left its world");
  state_->current().check_process();
  return state_->current();
}

bool RankScope::is_in_child() noexcept {
  if (state_->process == getpid()) return false;
  // The rank is the parent. The world here is a copy without its threads, and is left alone.
  static_cast<void>(state_.release());
  return true;
}

void RankScope::finish() noexcept {
  if (!state_ || is_in_child()) return;
  if (state_->simulated) return state_.reset();  // its peers see it when main() has returned
  end_with_all(state_->board);
  state_->leave_world();
  state_->board.post_finished(state_->rank);
  state_.reset();
}

void RankScope::fail(const Error& error) noexcept {
  if (!state_ || is_in_child()) return;
  if (state_->simulated) {
    state_->simulated->failure = error;
    return state_.reset();
  }
  end_with_all(state_->board);
  if (state_->world) state_->world->set_failing();
  state_->leave_world();
  state_->board.post_failed(state_->rank, error.code(), error.message());
  state_.reset();
}

}  // namespace tranship
