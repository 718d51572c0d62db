#include <algorithm>
#include <cstring>
#include <utility>

#include <tranship/fabric/sim/sim_fabric.hpp>
#include <tranship/fabric/sim/sim_transport.hpp>
#include <tranship/memory/host_device.hpp>

namespace tranship {

std::shared_ptr<void> SimFabric::local_memory(std::size_t size_bytes) {
  void* memory = allocate_on_host(size_bytes);
  if (!memory) return nullptr;
  return {memory, free_on_host};
}

std::unique_ptr<Transport> SimFabric::transport() {
  return std::make_unique<SimTransport>(simulation_, rank());
}

}  // namespace tranship
