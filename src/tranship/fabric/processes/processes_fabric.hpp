// Private: The processes back-end: ranks are processes of one machine, which reach each other's symmetric heaps and
// local memory, and nothing else.
#pragma once

#include <memory>
#include <mutex>

#include <unistd.h>

#include <tranship/fabric/heap/range_allocator.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/shared/shared_fabric.hpp>

namespace tranship {

class ProcessesFabric : public SharedFabric {
 public:
  ProcessesFabric(const std::shared_ptr<SharedWorld>& world, Rank rank)
      : ProcessesFabric(world, rank, world->board(), {.count = world->shape().ranks}) {}
  /// Of a world with ranks on other machines, as SharedFabric says.
  ProcessesFabric(std::shared_ptr<SharedWorld> world, Rank rank, Board& board, const Members& here);

  void* reach(Rank peer, const void* address) const noexcept override;
  bool is_exposed(const void* address) const noexcept override {
    return shared().translate(member_of(rank()), address) != nullptr;
  }
  bool has_own_statics() const noexcept override { return true; }
  Index available_bytes(Index) const override { return available_memory_bytes(); }
  std::shared_ptr<void> local_memory(std::size_t size_bytes) override;
  void give_back(std::size_t offset_bytes, std::size_t size_bytes) noexcept override {
    local_->give_back(offset_bytes, size_bytes);
  }

 private:
  /// This rank's local memory. Kept by what is allocated from it.
  struct Local {
    Local(std::shared_ptr<SharedWorld> world, int m)
        : shared(std::move(world)), member(m), ranges(shared->shape().local_bytes, shared->shape().heap_bytes) {}

    /// What a child that the rank forks lets go of is still its parent's.
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

}  // namespace tranship
