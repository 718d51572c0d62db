#include "tranship/program/replay/cores.hpp"

#include <algorithm>
#include <utility>

namespace tranship::replays {

ReplayCores::Turn ReplayCores::take(int worker, Index host_id, double now_ns) {
  if (machine_.cores_per_host == 0 || core_of_[std::size_t(worker)] >= 0) return {now_ns};
  Host& host = hosts_[std::size_t(host_id)];
  int found = -1;
  double free_ns = never_ns;
  for (std::size_t i = 0; i < host.cores.size(); ++i) {
    const Core& core = host.cores[i];
    if (core.is_busy) continue;
    free_ns = std::min(free_ns, core.free_ns);
    if (core.free_ns <= now_ns && (found < 0 || core.last_worker == worker)) found = static_cast<int>(i);
  }
  if (found >= 0) return occupy(worker, host, found, now_ns);
  if (free_ns == never_ns && !waits_[std::size_t(worker)]) {
    waits_[std::size_t(worker)] = true;
    host.waiting.push_back(worker);
  }
  return {free_ns};
}

/// Takes effect at once, unless another worker had the core before.
ReplayCores::Turn ReplayCores::occupy(int worker, Host& host, int core_id, double now_ns) {
  Core& core = host.cores[std::size_t(core_id)];
  const bool switches = core.last_worker >= 0 && core.last_worker != worker && machine_.core_switch_ns > 0;
  core.is_busy = true;
  core.last_worker = worker;
  core_of_[std::size_t(worker)] = core_id;
  return switches ? Turn{now_ns + machine_.core_switch_ns, true} : Turn{now_ns};
}

std::optional<ReplayCores::Next> ReplayCores::leave(int worker, Index host_id, double now_ns) {
  const int core = std::exchange(core_of_[std::size_t(worker)], -1);
  if (core < 0) return std::nullopt;
  Host& host = hosts_[std::size_t(host_id)];
  host.cores[std::size_t(core)].is_busy = false;
  host.cores[std::size_t(core)].free_ns = now_ns;
  if (host.first == host.waiting.size()) return std::nullopt;
  const int next = host.waiting[host.first++];
  waits_[std::size_t(next)] = false;
  if (host.first == host.waiting.size()) host.waiting.clear(), host.first = 0;
  return Next{next, occupy(next, host, core, now_ns)};
}

}  // namespace tranship::replays
