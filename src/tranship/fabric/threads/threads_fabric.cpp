#include <tranship/fabric/threads/threads_fabric.hpp>
#include <tranship/memory/host_device.hpp>

namespace tranship {

std::shared_ptr<void> ThreadsFabric::local_memory(std::size_t size_bytes) {
  void* memory = allocate_on_host(size_bytes);
  if (!memory) return nullptr;
  return {memory, free_on_host};
}

}  // namespace tranship
