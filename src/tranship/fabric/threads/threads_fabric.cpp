#include <tranship/fabric/threads/threads_fabric.hpp>
#include <tranship/memory/host_device.hpp>

namespace tranship {

std::shared_ptr<void> ThreadsFabric::local_memory(std::size_t size_bytes) {
  return {allocate_on_host(size_bytes), free_on_host};
}

}  // namespace tranship
