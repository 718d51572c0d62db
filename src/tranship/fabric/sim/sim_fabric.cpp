#include <algorithm>
#include <cstring>
#include <utility>

#include <tranship/fabric/sim/sim_fabric.hpp>
#include <tranship/fabric/sim/sim_transport.hpp>

namespace tranship {

namespace {

/// A meeting after which all members know what any of them knew before.
class SimMeeting final : public Meeting {
 public:
  SimMeeting(Simulation& simulation, Rank rank, const Members& members, int slot, std::unique_ptr<Meeting> inner)
      : simulation_(simulation), rank_(rank), members_(members), slot_(slot), inner_(std::move(inner)) {}

  void meet(World& world, const Call& call, CallSite where) override {
    learning([&] { inner_->meet(world, call, where); });
  }
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
              CallSite where) override {
    learning([&] { inner_->gather(world, call, mine, size_bytes, all, where); });
  }
  std::uint64_t calls() const noexcept override { return inner_->calls(); }
  void begin_at(std::uint64_t calls) override { inner_->begin_at(calls); }

 private:
  template <class F>
  void learning(F&& meet_all) {
    const std::uint64_t meeting = calls();
    simulation_.come(rank_, slot_, members_, meeting);
    meet_all();
    simulation_.go(rank_, slot_, members_, meeting);
  }

  Simulation& simulation_;
  Rank rank_;
  Members members_;
  int slot_;
  std::unique_ptr<Meeting> inner_;
};

}  // namespace

std::unique_ptr<Meeting> SimFabric::meeting(const Members& members, int slot) {
  return std::make_unique<SimMeeting>(simulation_, rank(), members, slot, SharedFabric::meeting(members, slot));
}

Result<void> SimFabric::obtain(std::size_t offset_bytes, std::size_t size_bytes) {
  if (Order* order = simulation_.order()) order->forget({rank(), offset_bytes, offset_bytes + size_bytes});
  return SharedFabric::obtain(offset_bytes, size_bytes);
}

std::unique_ptr<Transport> SimFabric::transport() {
  return std::make_unique<SimTransport>(simulation_, rank());
}

}  // namespace tranship
