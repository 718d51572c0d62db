#include "tranship/fabric/processes/processes_fabric.hpp"

#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>

namespace tranship {

ProcessesFabric::ProcessesFabric(std::shared_ptr<SharedWorld> world, Rank rank, Board& board, const Members& here)
    : SharedFabric(world, rank, board, here), local_(std::make_shared<Local>(std::move(world), here.member_of(rank))) {
  shared().post_base(member_of(rank));
}

void* ProcessesFabric::reach(Rank peer, const void* address) const noexcept {
  if (peer == rank()) return const_cast<void*>(address);
  return is_here(peer) ? shared().translate(member_of(peer), address) : nullptr;
}

std::shared_ptr<void> ProcessesFabric::local_memory(std::size_t size_bytes) {
  // Whole pages, so that they can be given back.
  const std::size_t pages = round_up(size_bytes, page_bytes());
  Local& local = *local_;
  const SharedWorld::Shape& shape = local.shared->shape();
  std::optional<std::size_t> offset;
  {
    const std::lock_guard lock(local.mutex);
    offset = local.ranges.allocate(pages, pages >= (std::size_t(4) << 20) ? std::size_t(2) << 20 : page_bytes());
  }
  if (!offset) return nullptr;
  const auto release = [local = local_, offset = *offset](void*) {
    const std::lock_guard lock(local->mutex);
    const std::size_t bytes = local->ranges.release(offset);
    local->give_back(local->shared->shape().heap_bytes + offset, bytes);
  };
  std::byte* data = local.shared->heap_of(local.member) + shape.heap_bytes + *offset;
  std::shared_ptr<void> memory(data, release);
  if (!local.shared->obtain(local.member, shape.heap_bytes + *offset, pages).ok()) return nullptr;
  return memory;
}

}  // namespace tranship
