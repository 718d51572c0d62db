#include "tranship/fabric/hosts/hosts_fabric.hpp"

#include <tranship/fabric/hosts/hosts_meeting.hpp>
#include <tranship/fabric/hosts/hosts_transport.hpp>

namespace tranship {

std::unique_ptr<Meeting> HostsFabric::meeting(const Members& members, int slot, const Members& named) {
  // The members of this machine, in the order of the team.
  std::vector<Rank> local, local_named;
  for (int member = 0; member < members.count; ++member)
    if (is_here(members.rank_of(member))) {
      local.push_back(members.rank_of(member));
      local_named.push_back(named.rank_of(member));
    }
  auto here = shared_meeting(Members::of(local), slot, Members::of(local_named));
  return std::make_unique<HostsMeeting>(engine_, host_of_, members, slot, named, std::move(here));
}

std::unique_ptr<Transport> HostsFabric::transport(World& world) {
  return std::make_unique<HostsTransport>(engine_, world);
}

}  // namespace tranship
