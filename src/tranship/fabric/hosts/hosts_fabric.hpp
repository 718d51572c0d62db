// Private: HostsFabric, one rank of a world on several machines. It reaches those of its own as ProcessesFabric does,
// and the others by the messages of a Wire.
#pragma once

#include <memory>
#include <vector>

#include <tranship/fabric/hosts/engine.hpp>
#include <tranship/fabric/processes/processes_fabric.hpp>

namespace tranship {

class HostsFabric final : public ProcessesFabric {
 public:
  /// The SharedWorld's board has a slot for every rank of the job. The engine outlives the fabric.
  HostsFabric(const std::shared_ptr<SharedWorld>& shared, HostsEngine& engine, std::vector<int> host_of)
      : ProcessesFabric(shared, engine.rank(), shared->board(), engine.here()),
        engine_(engine),
        host_of_(std::move(host_of)) {}

  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override;
  std::unique_ptr<Transport> transport(World& world) override;
  void idle(int round) override {
    if (!engine_.progress()) ProcessesFabric::idle(round);
  }

 private:
  HostsEngine& engine_;
  std::vector<int> host_of_;  // by rank
};

}  // namespace tranship
