// Private: SharedFabric, what all back-ends on one machine have in common: they meet in a SharedWorld, and its memory
// is reached by loads and stores. The world may have ranks on other machines besides; then those of a machine are
// members of its SharedWorld in any order.
#pragma once

#include <memory>
#include <vector>

#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/shared/shared_meeting.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

namespace tranship {

class SharedFabric : public Fabric {
 public:
  SharedFabric(const std::shared_ptr<SharedWorld>& shared, Rank rank) : SharedFabric(shared, rank, shared->board()) {}
  /// With another board than that of the world.
  SharedFabric(std::shared_ptr<SharedWorld> shared, Rank rank, Board& board)
      : SharedFabric(std::move(shared), rank, board, {.count = board.ranks()}) {}
  /// Rank `here.rank_of(i)` of as many as the board has is member i of the SharedWorld.
  SharedFabric(std::shared_ptr<SharedWorld> shared, Rank rank, Board& board, const Members& here);

  TeamSlots& team_slots() noexcept override { return team_slots_; }
  PeerKind peer_kind(Rank peer) const noexcept override {
    return is_here(peer) ? PeerKind::reachable : PeerKind::messaged;
  }
  Members sharing() const override { return here_; }
  Members on_this_machine() const override { return here_; }
  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override {
    return shared_meeting(members, slot, named);
  }
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
  bool has_own_statics() const noexcept override { return size() == 1; }
  /// Belong to this process: where ranks are processes they have others.
  std::shared_ptr<void> local_memory(std::size_t size_bytes) override;
  std::shared_ptr<void> lifetime() const override { return shared_; }
  std::unique_ptr<Transport> transport(World&) override { return nullptr; }
  int spin_rounds() const noexcept override { return has_cores_ ? 1000 : 10; }
  std::int64_t spin_ns() const noexcept override { return has_cores_ ? 200'000 : 0; }
  int unseen_rounds() const noexcept override { return has_cores_ ? 0 : 20; }
  void idle(int round) override;
  std::int64_t poll_ns() const noexcept override { return has_cores_ ? 20'000 : 5'000; }

 protected:
  SharedWorld& shared() const noexcept { return *shared_; }
  /// Of members that are all here.
  std::unique_ptr<SharedMeeting> shared_meeting(const Members& members, int slot, const Members& named);
  const Members& here() const noexcept { return here_; }
  bool is_here(Rank rank) const noexcept { return member_of(rank) >= 0; }
  /// The member of the SharedWorld that a rank is, or -1.
  int member_of(Rank rank) const noexcept { return here_.member_of(rank); }

 private:
  /// Waits until the members of the team that had a slot before have read what this rank brought there.
  void wait_for_readers(int slot);

  std::shared_ptr<SharedWorld> shared_;
  Members here_;
  int member_;
  TeamSlots team_slots_;
  std::vector<SharedMeeting::Brought> brought_;  // by slot
  bool has_cores_;                               // each rank one of its own
  int ranks_per_core_;
};

}  // namespace tranship
