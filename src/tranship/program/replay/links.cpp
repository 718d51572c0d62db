#include "tranship/program/replay/links.hpp"

#include <algorithm>

namespace tranship::replays {
namespace {

void reserve(double& free_ns, double begin_ns, double bytes, double gb_per_s, double& done_ns) {
  if (gb_per_s <= 0) return;
  free_ns = std::max(free_ns, begin_ns) + bytes / gb_per_s;
  done_ns = std::max(done_ns, free_ns);
}

}  // namespace

ReplayLinks::ReplayLinks(const MachineModel& machine, Rank ranks)
    : machine_(machine),
      ranks_(std::size_t(ranks)),
      hosts_(std::size_t((ranks - 1) / machine.ranks_per_host + 1)),
      proxies_(std::size_t(ranks)) {}

double ReplayLinks::take(const std::vector<LinkLoad>& loads, double begin_ns) {
  double done_ns = 0;
  for (const LinkLoad& load : loads) {
    if (!load.has_proxy) {
      done_ns = std::max(done_ns, carry(load, begin_ns));
      continue;
    }
    double& free_ns = proxies_[std::size_t(load.from)][load.to];
    const double start_ns = std::max(free_ns, begin_ns);
    free_ns = std::max(start_ns + load.bandwidth_ns, carry(load, start_ns));
  }
  return done_ns;
}

/// A switch itself limits nothing; the link of the rank that uses it does.
double ReplayLinks::carry(const LinkLoad& load, double begin_ns) {
  double done_ns = 0;
  const bool has_from = load.from != LinkLoad::at_switch, has_to = load.to != LinkLoad::at_switch;
  if (has_from) reserve(ranks_[std::size_t(load.from)].sends_ns, begin_ns, load.bytes, machine_.rank_gb_per_s, done_ns);
  if (has_to) reserve(ranks_[std::size_t(load.to)].receives_ns, begin_ns, load.bytes, machine_.rank_gb_per_s, done_ns);
  if (!has_from || !has_to) return done_ns;
  const Index from_host = load.from / machine_.ranks_per_host, to_host = load.to / machine_.ranks_per_host;
  if (from_host == to_host) return done_ns;
  reserve(hosts_[std::size_t(from_host)].sends_ns, begin_ns, load.bytes, machine_.host_gb_per_s, done_ns);
  reserve(hosts_[std::size_t(to_host)].receives_ns, begin_ns, load.bytes, machine_.host_gb_per_s, done_ns);
  return done_ns;
}

double ReplayLinks::proxy_free_ns(Rank from, Rank to) const {
  const auto& of_rank = proxies_[std::size_t(from)];
  const auto at = of_rank.find(to);
  return at == of_rank.end() ? 0 : at->second;
}

}  // namespace tranship::replays
