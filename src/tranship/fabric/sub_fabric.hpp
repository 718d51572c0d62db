// Private: SubFabric, what a back-end gives to some of its ranks, numbered anew. All that is done is done by the fabric
// of the world around it; this translates ranks, and offsets into its part of the heap.
#pragma once

#include <memory>
#include <utility>

#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/seam/fabric.hpp>

namespace tranship {

class SubFabric final : public Fabric {
 public:
  /// Of members in the order of their ranks, `rank` among them. What `whole` refers to outlives this object, `lent`
  /// is a part of the heap of `around`, and `slot` one that they have taken.
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
