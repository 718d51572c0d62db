#include "tranship/fabric/hosts/hosts_fabric.hpp"

#include <tranship/fabric/hosts/hosts_meeting.hpp>
#include <tranship/fabric/hosts/hosts_transport.hpp>

namespace tranship {

std::unique_ptr<Meeting> HostsFabric::meeting(const Members& members, int slot, const Members& named) {
  const MembersHere here = members_here(host_of_, rank(), members, named);
  return std::make_unique<HostsMeeting>(engine_, host_of_, rank(), members, slot, named,
                                        shared_meeting(here.members, slot, here.named));
}

std::unique_ptr<Transport> HostsFabric::transport(World& world) {
  return std::make_unique<HostsTransport>(engine_, world);
}

}  // namespace tranship
