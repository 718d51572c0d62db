// Private: HostsFabric, one rank of a world on several machines. It reaches those of its own as ProcessesFabric does,
// and the others by the messages of a Wire.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tranship/fabric/hosts/engine.hpp>
#include <tranship/fabric/processes/processes_fabric.hpp>
#include <tranship/fabric/shared/shared_clock.hpp>

namespace tranship {

/// A rank that idles serves the messages that have come to it first. A rank that waits looks for them each time, and
/// goes to sleep when none has come for as long as a rank of one machine yields. Ranks that share cores go to sleep
/// even while messages come, because one that yields again and again delays the ranks that it waits for.
class HostsClock final : public SharedClock {
 public:
  HostsClock(HostsEngine& engine, int cores)
      : SharedClock(engine.here().count, cores, patience_of(engine.here().count, cores)),
        engine_(engine),
        has_core_(engine.here().count <= cores) {}

  void idle(int round) override {
    if (engine_.progress()) return;
    SharedClock::idle(has_core_ ? rounds_since_arrival(round) : round);
  }

 private:
  static Patience patience_of(int ranks, int cores) {
    Patience out = SharedClock::patience_of(ranks, cores);
    out.spin_rounds = std::min(out.spin_rounds, 50);
    out.pauses = 1;
    return out;
  }
  int rounds_since_arrival(int round) noexcept {
    const std::uint64_t arrivals = engine_.arrivals();
    if (std::exchange(arrivals_, arrivals) != arrivals || round < first_round_) first_round_ = round;
    return round - first_round_;
  }

  HostsEngine& engine_;
  bool has_core_;               // to itself
  std::uint64_t arrivals_ = 0;  // that it had when this last idled
  int first_round_ = 0;         // after the last one that came
};

class HostsFabric final : public ProcessesFabric {
 public:
  /// The SharedWorld's board has a slot for every rank of the job. The engine outlives the fabric.
  HostsFabric(const std::shared_ptr<SharedWorld>& shared, HostsEngine& engine, std::vector<int> host_of)
      : ProcessesFabric(shared, engine.rank(), shared->board(), engine.here(),
                        std::make_shared<HostsClock>(engine, shared->shape().cores)),
        engine_(engine),
        host_of_(std::move(host_of)) {}

  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override;
  std::unique_ptr<Transport> transport(World& world) override;

 private:
  HostsEngine& engine_;
  std::vector<int> host_of_;  // by rank
};

}  // namespace tranship
