// Private: Fabric, the seam between World and a back-end. One object per rank; it says what differs between threads,
// processes, a simulator and clusters. What is on the fast path (words, loads and stores of memory that is reachable)
// does not go through it.
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

  /// The rank that a rank of this world was launched as: another one in a sub-world.
  virtual Rank launched_rank(Rank rank) const noexcept { return rank; }
  virtual PeerKind peer_kind(Rank peer) const noexcept = 0;
  /// The ranks that this one shares memory with, itself included; those of its machine.
  virtual Members sharing() const { return {.count = size()}; }
  virtual Members on_this_machine() const { return {.count = size()}; }
  /// World::reach; `peer` has been checked.
  virtual void* reach(Rank peer, const void* address) const noexcept = 0;
  /// Whether peers that are reachable can reach what this rank has at `address`.
  virtual bool is_exposed(const void* address) const noexcept = 0;
  /// The meeting of a team that this rank belongs to. `slot` is the same on all its members and theirs alone, less than
  /// team_slots().count(). What it says of its members it says of those of `named`, which are as many.
  virtual std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) = 0;
  /// The slots of this rank's teams, as many as teams can exist at a time, the world included; and the slot of the team
  /// of all ranks.
  virtual TeamSlots& team_slots() noexcept = 0;
  virtual int world_slot() const noexcept { return 0; }

  /// Whether ranks have static variables of their own.
  virtual bool has_own_statics() const noexcept = 0;
  /// Carries the transfers of one context to the peers that are not direct in Domain::heap(); nullptr where it reaches
  /// all. `world` is the one that waits for them.
  virtual std::unique_ptr<Transport> transport(World& world) = 0;
  /// Sees what this rank does to words, where order is checked; nullptr elsewhere.
  virtual std::shared_ptr<FlagWatch> flag_watch() { return nullptr; }

 private:
  Rank rank_;
  Board* board_;
  std::shared_ptr<Domain> domain_;
  std::shared_ptr<Clock> clock_;
};

}  // namespace tranship
