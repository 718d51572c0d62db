// Private: one simulated rank. Memory is shared as that of threads is; transfers go through the log of the simulation.
#pragma once

#include <tranship/fabric/shared/shared_fabric.hpp>
#include <tranship/fabric/sim/simulation.hpp>

namespace tranship {

class SimFabric final : public SharedFabric {
 public:
  SimFabric(Simulation& simulation, std::shared_ptr<SharedWorld> shared, Rank rank)
      : SharedFabric(std::move(shared), rank), simulation_(simulation) {}

  PeerKind peer_kind(Rank peer) const noexcept override {
    return peer == rank() ? PeerKind::reachable : simulation_.options().peers;
  }
  Members sharing() const noexcept override {
    if (simulation_.options().peers == PeerKind::messaged) return {.first = rank()};
    return SharedFabric::sharing();
  }
  void* reach(Rank peer, const void* address) const noexcept override {
    return peer_kind(peer) == PeerKind::reachable ? const_cast<void*>(address) : nullptr;
  }
  bool is_exposed(const void*) const noexcept override { return simulation_.options().peers == PeerKind::reachable; }
  HeapPlace heap() const noexcept override {
    HeapPlace place = SharedFabric::heap();
    place.direct = false;
    return place;
  }
  std::unique_ptr<Meeting> meeting(const Members& members, int slot) override;
  Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) override;
  Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes, std::size_t size_bytes,
                                     void* memory) override;
  std::unique_ptr<Transport> transport() override;
  std::shared_ptr<FlagWatch> flag_watch() override;
  int spin_rounds() const noexcept override { return 0; }
  std::int64_t spin_ns() const noexcept override { return 0; }
  int unseen_rounds() const noexcept override { return 0; }
  int polls_per_look() const noexcept override { return 8; }
  std::int64_t own_time_ns() const noexcept override { return 0; }
  void idle(int round) override { simulation_.wait(rank(), round); }
  bool passed(Deadline deadline) const override { return simulation_.passed(rank(), deadline); }

 private:
  Simulation& simulation_;
};

}  // namespace tranship
