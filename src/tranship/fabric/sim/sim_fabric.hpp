// Private: one simulated rank. Memory is shared as that of threads is, or by the ranks of one machine; transfers go
// through the log of the simulation.
#pragma once

#include <tranship/fabric/shared/shared_fabric.hpp>
#include <tranship/fabric/sim/simulation.hpp>

namespace tranship {

class SimFabric final : public SharedFabric {
 public:
  SimFabric(Simulation& simulation, std::shared_ptr<SharedWorld> shared, Rank rank)
      : SharedFabric(std::move(shared), rank, simulation.board_of(rank)), simulation_(simulation) {}

  PeerKind peer_kind(Rank peer) const noexcept override {
    if (peer == rank()) return PeerKind::reachable;
    return host().member_of(peer) >= 0 ? simulation_.options().peers : PeerKind::messaged;
  }
  Members sharing() const override {
    if (simulation_.options().peers == PeerKind::messaged) return {.first = rank()};
    return host();
  }
  Members on_this_machine() const override { return host(); }
  void* reach(Rank peer, const void* address) const noexcept override {
    return peer_kind(peer) == PeerKind::reachable ? const_cast<void*>(address) : nullptr;
  }
  bool is_exposed(const void*) const noexcept override { return simulation_.options().peers == PeerKind::reachable; }
  HeapPlace heap() const override;
  std::shared_ptr<void> local_memory(std::size_t size_bytes) override {
    HostMemory* memory = simulation_.host_memory();
    return memory ? memory->allocate(rank() / simulation_.options().ranks_per_host, size_bytes)
                  : SharedFabric::local_memory(size_bytes);
  }
  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override;
  Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) override;
  Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes, std::size_t size_bytes,
                                     void* memory) override;
  std::unique_ptr<Transport> transport(World& world) override;
  std::shared_ptr<FlagWatch> flag_watch() override;
  int spin_rounds() const noexcept override { return 0; }
  std::int64_t spin_ns() const noexcept override { return 0; }
  int unseen_rounds() const noexcept override { return 0; }
  int polls_per_look() const noexcept override { return 8; }
  std::int64_t poll_ns() const noexcept override { return 0; }
  void idle(int round) override { simulation_.wait(rank(), round); }
  bool passed(Deadline deadline) const override { return simulation_.passed(rank(), deadline); }

 private:
  Members host() const noexcept { return simulation_.host_of(rank()); }

  Simulation& simulation_;
};

}  // namespace tranship
