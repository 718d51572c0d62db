// Private: SharedDomain: the memory of a rank in a SharedWorld.
#pragma once

#include <memory>

#include <tranship/fabric/seam/domain.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

namespace tranship {

class SharedDomain : public Domain {
 public:
  /// For one of `ranks` ranks; rank `here.rank_of(i)` is member i of the SharedWorld.
  SharedDomain(std::shared_ptr<SharedWorld> shared, Rank rank, int ranks, Members here)
      : shared_(std::move(shared)), member_(here.member_of(rank)), ranks_(ranks), here_(std::move(here)) {}

  HeapPlace heap() const override;
  Index available_bytes(Index granted_bytes) const override;
  Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) override {
    return shared_->obtain(member_, offset_bytes, size_bytes);
  }
  void give_back(std::size_t offset_bytes, std::size_t size_bytes) noexcept override {
    shared_->give_back(member_, offset_bytes, size_bytes);
  }
  Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes, std::size_t size_bytes,
                                     void* memory) override;
  /// Returns memory of this process only; where ranks are processes, their domains override this.
  std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content) override;
  std::shared_ptr<void> lifetime() const override { return shared_; }

 protected:
  const Members& here() const noexcept { return here_; }

 private:
  std::shared_ptr<SharedWorld> shared_;
  int member_;
  int ranks_;
  Members here_;
};

}  // namespace tranship
