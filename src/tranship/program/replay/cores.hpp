// Private: ReplayCores assigns the workers of a replay to the cores of their hosts, where there are fewer cores than
// workers.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include <tranship/program/machine_model.hpp>

namespace tranship::replays {

inline constexpr double never_ns = std::numeric_limits<double>::infinity();

/// Workers of one host share its cores. Waiting workers get them in order of arrival.
class ReplayCores {
 public:
  ReplayCores(const MachineModel& machine, Index hosts, std::size_t workers)
      : machine_(machine), hosts_(std::size_t(hosts)), core_of_(workers, -1), waits_(workers, false) {
    for (Host& host : hosts_) host.cores.resize(std::size_t(machine.cores_per_host));
  }

  struct Turn {
    double at_ns = never_ns;    ///< when the worker may run, or ask again; never: another worker's leave() decides
    bool is_switching = false;  ///< true: it has the core, and runs from at_ns on
  };
  /// Asks for a core.
  Turn take(int worker, Index host, double now_ns);
  struct Next {
    int worker;
    Turn turn;
  };
  /// The worker gives up its core for now. Returns the worker that gets it, if one waits.
  std::optional<Next> leave(int worker, Index host, double now_ns);

 private:
  struct Core {
    double free_ns = 0;
    int last_worker = -1;
    bool is_busy = false;
  };
  struct Host {
    std::vector<Core> cores;
    std::vector<int> waiting;  // in order of arrival; those before `first` have got a core
    std::size_t first = 0;
  };
  Turn occupy(int worker, Host& host, int core, double now_ns);

  const MachineModel& machine_;
  std::vector<Host> hosts_;
  std::vector<int> core_of_;  // by worker
  std::vector<bool> waits_;
};

}  // namespace tranship::replays
