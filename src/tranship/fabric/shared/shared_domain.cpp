#include "tranship/fabric/shared/shared_domain.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship {

HeapPlace SharedDomain::heap() const {
  HeapPlace place{.own = shared_->heap_of(member_),
                  .size_bytes = shared_->heap_bytes(),
                  .mapped = shared_->heaps(),
                  .alignment_bytes = SharedMemory::alignment_bytes};
  if (here_ != Members{.count = ranks_}) {
    std::vector<HeapAddresses::Address> heaps(static_cast<std::size_t>(ranks_));
    for (int member = 0; member < here_.count; ++member)
      heaps[static_cast<std::size_t>(here_.rank_of(member))] =
          reinterpret_cast<HeapAddresses::Address>(shared_->heap_of(member));
    place.mapped = HeapAddresses(std::move(heaps));
  }
  place.direct = place.mapped;
  return place;
}

Index SharedDomain::available_bytes(Index granted_bytes) const {
  // The system grants memory of a process on first touch: granted memory that is not resident yet is already spoken
  // for.
  return available_memory_bytes() - std::max<Index>(0, granted_bytes - resident_memory_bytes());
}

std::shared_ptr<void> SharedDomain::local_memory(std::size_t size_bytes, MemoryContent content) {
  constexpr std::size_t worth_asking = std::size_t(1) << 20;
  // Zeroed memory that has been handed out and not been touched yet is already spoken for.
  if (size_bytes >= worth_asking && Index(size_bytes) > SharedDomain::available_bytes(Index(fresh_bytes_on_host())))
    return nullptr;
  if (content == MemoryContent::zeros && size_bytes >= fresh_pages_bytes_min) return fresh_pages_on_host(size_bytes);
  void* memory = allocate_on_host(size_bytes);
  if (!memory) return nullptr;
  if (content == MemoryContent::zeros) std::memset(memory, 0, size_bytes);
  return {memory, free_on_host};
}

Result<std::shared_ptr<void>> SharedDomain::join(std::shared_ptr<void> block, std::size_t offset_bytes,
                                                 std::size_t size_bytes, void* memory) {
  if (Result<void> joined = shared_->join(member_, offset_bytes, size_bytes, memory); !joined) return joined.error();
  // Weak references keep this function object alive, so it releases its captures when it is called.
  auto part = [block = std::move(block), shared = shared_, member = member_, offset_bytes,
               size_bytes](void* joined) mutable {
    // If the pages stay together, they belong to the program: leaking the block keeps others from getting them.
    if (!shared->part(member, offset_bytes, size_bytes, joined)) new std::shared_ptr<void>(block);
    block.reset();
    shared.reset();
  };
  return std::shared_ptr<void>(memory, std::move(part));
}

}  // namespace tranship
