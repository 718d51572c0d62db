// Private: SharedFabric: the common part of all back-ends whose ranks share a machine: they meet in a SharedWorld and
// reach its memory by loads and stores. The world may also have ranks on other machines; then the ranks of this machine
// are the members of its SharedWorld, in any order.
#pragma once

#include <memory>
#include <vector>

#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/shared/shared_meeting.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

namespace tranship {

class SharedFabric : public Fabric {
 public:
  /// Rank `here.rank_of(i)`, of as many ranks as the board has, is member i of the SharedWorld. Uses a SharedDomain and
  /// a SharedClock unless the back-end passes its own.
  SharedFabric(std::shared_ptr<SharedWorld> shared, Rank rank, Board& board, const Members& here,
               std::shared_ptr<Domain> domain = nullptr, std::shared_ptr<Clock> clock = nullptr);
  SharedFabric(const std::shared_ptr<SharedWorld>& shared, Rank rank)
      : SharedFabric(shared, rank, shared->board(), {.count = shared->shape().ranks}) {}

  TeamSlots& team_slots() noexcept override { return team_slots_; }
  PeerKind peer_kind(Rank peer) const noexcept override {
    return is_here(peer) ? PeerKind::reachable : PeerKind::messaged;
  }
  Members sharing() const override { return here_; }
  Members on_this_machine() const override { return here_; }
  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override {
    return shared_meeting(members, slot, named);
  }
  bool has_own_statics() const noexcept override { return size() == 1; }
  std::unique_ptr<Transport> transport(World&) override { return nullptr; }

 protected:
  SharedWorld& shared() const noexcept { return *shared_; }
  /// All members must be on this machine.
  std::unique_ptr<SharedMeeting> shared_meeting(const Members& members, int slot, const Members& named);
  const Members& here() const noexcept { return here_; }
  bool is_here(Rank rank) const noexcept { return member_of(rank) >= 0; }
  /// Returns the member of the SharedWorld that a rank is, or -1.
  int member_of(Rank rank) const noexcept { return here_.member_of(rank); }

 private:
  /// Waits until the team that had a slot before has read what this rank brought there.
  void wait_for_readers(int slot);

  std::shared_ptr<SharedWorld> shared_;
  Members here_;
  int member_;
  TeamSlots team_slots_;
  std::vector<SharedMeeting::Brought> brought_;  // by slot
};

}  // namespace tranship
