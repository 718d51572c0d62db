// Private: SimFabric: one simulated rank. Memory is shared as between threads, or between the ranks of one machine;
// transfers go through the log of the simulation.
#pragma once

#include <tranship/fabric/hosts/mail.hpp>
#include <tranship/fabric/shared/shared_fabric.hpp>
#include <tranship/fabric/sim/simulation.hpp>

namespace tranship {

class SimFabric final : public SharedFabric {
 public:
  SimFabric(Simulation& simulation, const std::shared_ptr<SharedWorld>& shared, Rank rank);

  PeerKind peer_kind(Rank peer) const noexcept override {
    if (peer == rank()) return PeerKind::reachable;
    return host().member_of(peer) >= 0 ? simulation_.options().peers : PeerKind::messaged;
  }
  Members sharing() const override;
  Members on_this_machine() const override { return host(); }
  void* reach(Rank peer, const void* address) const noexcept override {
    return peer_kind(peer) == PeerKind::reachable ? const_cast<void*>(address) : nullptr;
  }
  bool is_exposed(const void*) const noexcept override { return simulation_.options().peers == PeerKind::reachable; }
  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override;
  std::unique_ptr<Transport> transport(World& world) override;
  std::shared_ptr<FlagWatch> flag_watch() override;

 private:
  Members host() const noexcept { return simulation_.host_of(rank()); }

  /// Letters that arrive at once, but are counted.
  class SimMail final : public Mail {
   public:
    explicit SimMail(const SimFabric& fabric) : fabric_(fabric) {}
    void bring(Rank peer, Key meeting, std::span<const std::byte> bytes) override {
      fabric_.simulation_.bring(fabric_.rank(), peer, meeting, bytes);
    }
    std::optional<std::vector<std::byte>> take(Rank peer, Key meeting) override {
      return fabric_.simulation_.take(fabric_.rank(), peer, meeting);
    }

   private:
    const SimFabric& fabric_;
  };

  Simulation& simulation_;
  SimMail mail_;
};

}  // namespace tranship
