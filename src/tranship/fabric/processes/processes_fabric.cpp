#include "tranship/fabric/processes/processes_fabric.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/heap/range_allocator.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/shared/shared_domain.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {
namespace {

/// Local memory follows the heap of its rank in the shared memory, where other processes reach it.
class ProcessesDomain final : public SharedDomain {
 public:
  ProcessesDomain(const std::shared_ptr<SharedWorld>& world, Rank rank, int ranks, const Members& here)
      : SharedDomain(world, rank, ranks, here), local_(std::make_shared<Local>(world, here.member_of(rank))) {}

  Index available_bytes(Index) const override { return available_memory_bytes(); }
  void give_back(std::size_t offset_bytes, std::size_t size_bytes) noexcept override {
    local_->give_back(offset_bytes, size_bytes);
  }
  std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content) override {
    // Whole pages can be given back.
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
    if (content == MemoryContent::zeros) std::memset(data, 0, size_bytes);
    return memory;
  }

 private:
  /// This rank's local memory. Each allocation from it keeps it alive.
  struct Local {
    Local(std::shared_ptr<SharedWorld> world, int m)
        : shared(std::move(world)), member(m), ranges(shared->shape().local_bytes, shared->shape().heap_bytes) {}

    /// Memory that a forked child releases still belongs to its parent.
    void give_back(std::size_t offset_bytes, std::size_t size_bytes) const noexcept {
      if (process == getpid()) shared->give_back(member, offset_bytes, size_bytes);
    }

    std::shared_ptr<SharedWorld> shared;
    int member;
    pid_t process = getpid();
    std::mutex mutex;
    RangeAllocator ranges;
  };

  std::shared_ptr<Local> local_;
};

}  // namespace

ProcessesFabric::ProcessesFabric(const std::shared_ptr<SharedWorld>& world, Rank rank, Board& board,
                                 const Members& here, std::shared_ptr<Clock> clock)
    : SharedFabric(world, rank, board, here, std::make_shared<ProcessesDomain>(world, rank, board.ranks(), here),
                   std::move(clock)) {
  shared().post_base(member_of(rank));
}

void* ProcessesFabric::reach(Rank peer, const void* address) const noexcept {
  if (peer == rank()) return const_cast<void*>(address);
  return is_here(peer) ? shared().translate(member_of(peer), address) : nullptr;
}

}  // namespace tranship
