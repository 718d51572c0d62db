// Private: The processes back-end: ranks are processes of one machine. They reach each other's symmetric heaps and
// local memory, but no other memory.
#pragma once

#include <memory>

#include <tranship/fabric/shared/shared_fabric.hpp>

namespace tranship {

class ProcessesFabric : public SharedFabric {
 public:
  ProcessesFabric(const std::shared_ptr<SharedWorld>& world, Rank rank)
      : ProcessesFabric(world, rank, world->board(), {.count = world->shape().ranks}) {}
  /// For a world with ranks on other machines, as in SharedFabric.
  ProcessesFabric(const std::shared_ptr<SharedWorld>& world, Rank rank, Board& board, const Members& here,
                  std::shared_ptr<Clock> clock = nullptr);

  void* reach(Rank peer, const void* address) const noexcept override;
  bool is_exposed(const void* address) const noexcept override {
    return shared().translate(member_of(rank()), address) != nullptr;
  }
  bool has_own_statics() const noexcept override { return true; }
};

}  // namespace tranship
