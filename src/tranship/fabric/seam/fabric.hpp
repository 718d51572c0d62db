// Private: Fabric: the seam between World and a back-end. There is one object per rank; it implements everything that
// differs between threads, processes, a simulator and clusters. The fast path (words, and loads and stores of reachable
// memory) does not go through it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/seam/board.hpp>
#include <tranship/fabric/seam/clock.hpp>
#include <tranship/fabric/seam/domain.hpp>
#include <tranship/fabric/seam/meeting.hpp>
#include <tranship/fabric/seam/members.hpp>
#include <tranship/fabric/seam/team_slots.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>

namespace tranship {

class World;

class Fabric {
 public:
  Fabric(Rank rank, Board& board, std::shared_ptr<Domain> domain, std::shared_ptr<Clock> clock)
      : rank_(rank), board_(&board), domain_(std::move(domain)), clock_(std::move(clock)) {}
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  Rank rank() const noexcept { return rank_; }
  int size() const noexcept { return board_->ranks(); }
  Board& board() const noexcept { return *board_; }
  Domain& domain() const noexcept { return *domain_; }
  Clock& clock() const noexcept { return *clock_; }

  /// Returns the number under which a rank of this world was launched; another one in a sub-world.
  virtual Rank launched_rank(Rank rank) const noexcept { return rank; }
  virtual PeerKind peer_kind(Rank peer) const noexcept = 0;
  /// The ranks that this rank shares memory with, and the ranks of its machine; both include itself.
  virtual Members sharing() const { return {.count = size()}; }
  virtual Members on_this_machine() const { return {.count = size()}; }
  /// Implements World::reach(); `peer` has been checked.
  virtual void* reach(Rank peer, const void* address) const noexcept = 0;
  /// Returns true if reachable peers can reach this rank's memory at `address`.
  virtual bool is_exposed(const void* address) const noexcept = 0;
  /// Makes the meeting of a team to which this rank belongs. `slot` is less than team_slots().count(), and only this
  /// team uses it on any of its members. In messages the members have the ranks of `named`, which has the same number
  /// of members.
  virtual std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) = 0;
  /// The slots of this rank's teams, which bound the number of teams at a time, the world's included; and the slot of
  /// the team of all ranks.
  virtual TeamSlots& team_slots() noexcept = 0;
  virtual int world_slot() const noexcept { return 0; }

  /// Returns true if each rank has static variables of its own.
  virtual bool has_own_statics() const noexcept = 0;
  /// Makes the carrier of one context's transfers to peers that are not direct in Domain::heap(); nullptr if all are.
  /// `world` is the world that waits for these transfers.
  virtual std::unique_ptr<Transport> transport(World& world) = 0;
  /// Returns an observer of this rank's accesses to words if accesses are checked for order; else nullptr.
  virtual std::shared_ptr<FlagWatch> flag_watch() { return nullptr; }

 private:
  Rank rank_;
  Board* board_;
  std::shared_ptr<Domain> domain_;
  std::shared_ptr<Clock> clock_;
};

}  // namespace tranship
