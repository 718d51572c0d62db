#include "tranship/fabric/sub_world.hpp"

#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/sub_fabric.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

struct SubWorld::State {
  Team team;  // holds the slot
  SubFabric fabric;
  World world;

  State(Team mine, World& around, Fabric& whole, const SymmetricHeap::Lent& lent)
      : team(std::move(mine)),
        fabric(whole, around.heap(), team.members(), team.slot(), lent),
        world(fabric, around.timeout_ns()) {
    world.set_interrupt_check(around.interrupt_check_);
    world.under_way_ = around.under_way_;
  }
};

SubWorld::SubWorld(Team& team, const SubWorldOptions& options, CallSite where) {
  World& around = team.world();
  if (!team.members().in_order())
    throw_error(
        ErrorCode::unsupported,
        "a sub-world of a team whose members 0 and {} are ranks {} and {}: members must be in the order of their "
        "ranks (rank {}, {})",
        team.size() - 1, team.world_rank(0), team.world_rank(team.size() - 1), around.rank(), short_name(where));
  const SymmetricHeap::Lent lent = around.heap_->lend(team, options.heap_bytes, where);
  std::optional<Team> mine = team.split_strided({.count = team.size()}, where);
  state_ = std::make_unique<State>(*std::move(mine), around, *around.fabric_, lent);
}

SubWorld::SubWorld(SubWorld&&) noexcept = default;
SubWorld::~SubWorld() = default;

World& SubWorld::world() const noexcept {
  return state_->world;
}

}  // namespace tranship
