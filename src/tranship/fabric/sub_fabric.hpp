// Private: SubFabric: the fabric of a sub-world. It translates ranks and heap offsets and delegates all work to the
// fabric of the world around it.
#pragma once

#include <memory>
#include <utility>

#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/seam/fabric.hpp>

namespace tranship {

class SubFabric final : public Fabric {
 public:
  /// `members` lists the ranks in increasing order, with `rank` among them. Everything that `whole` refers to must
  /// outlive this object; `lent` is a part of the heap of `around`, and `slot` is a slot that the members have taken.
  SubFabric(Fabric& whole, const SymmetricHeap& around, const Members& members, int slot,
            const SymmetricHeap::Lent& lent)
      : SubFabric(std::make_unique<Board>(whole.board(), members), whole, around, members, slot, lent) {}

  Rank launched_rank(Rank rank) const noexcept override { return whole_.launched_rank(members_.rank_of(rank)); }
  PeerKind peer_kind(Rank peer) const noexcept override { return whole_.peer_kind(members_.rank_of(peer)); }
  Members sharing() const override { return whole_.sharing().among(members_); }
  Members on_this_machine() const override { return whole_.on_this_machine().among(members_); }
  void* reach(Rank peer, const void* address) const noexcept override {
    return whole_.reach(members_.rank_of(peer), address);
  }
  bool is_exposed(const void* address) const noexcept override { return whole_.is_exposed(address); }
  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override {
    return whole_.meeting(members.in(members_), slot, named);
  }
  TeamSlots& team_slots() noexcept override { return whole_.team_slots(); }
  int world_slot() const noexcept override { return slot_; }

  bool has_own_statics() const noexcept override { return whole_.has_own_statics(); }
  std::unique_ptr<Transport> transport(World& world) override;
  std::shared_ptr<FlagWatch> flag_watch() override { return whole_.flag_watch(); }

 private:
  SubFabric(std::unique_ptr<Board> board, Fabric& whole, const SymmetricHeap& around, const Members& members, int slot,
            const SymmetricHeap::Lent& lent);

  std::unique_ptr<Board> board_;
  Fabric& whole_;
  Members members_;
  int slot_;
  std::size_t offset_bytes_;  // of the lent part of the heap
};

}  // namespace tranship
