// Ranks on several hosts that share nothing: each host has memory of its own, and its processes are joined to those of
// the others by pairs of sockets alone. A back-end for tests, in place of a network. What runs ranks as processes runs
// them on it where TRANSHIP_BACKEND is "hosts" (ranks in blocks on two hosts) or "dealt" (ranks that are dealt to
// them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship::test {

struct HostsOptions {
  /// By rank, from 0 without a gap.
  std::vector<int> host_of;
  std::size_t heap_bytes = std::size_t(64) << 20;
  std::int64_t timeout_ns = default_timeout_ns();
};

/// Ranks that lie one after the other on as many hosts, and ranks that are dealt to them in turn.
std::vector<int> hosts_in_blocks(int ranks, int hosts);
std::vector<int> hosts_in_turn(int ranks, int hosts);

/// Runs `body` as ranks; throws as launch_processes does, by what the first rank that failed has said, and `internal`
/// where a rank has ended all (World::global_exit) and a process has ended with another status.
void launch_hosts(const HostsOptions& options, FunctionRef<void(World&)> body);

}  // namespace tranship::test
