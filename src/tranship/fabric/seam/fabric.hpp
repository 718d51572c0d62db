// Detail: Fabric, the seam between World and a back-end. One object per rank; it says what differs between threads,
// processes, a simulator and clusters. What is on the fast path (words, loads and stores of memory that is reachable)
// does not go through it.
#pragma once

#include <cstddef>
#include <memory>

#include <tranship/base/call_site.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/fabric/seam/board.hpp>
#include <tranship/fabric/seam/call.hpp>
#include <tranship/fabric/seam/heap_place.hpp>
#include <tranship/fabric/seam/members.hpp>
#include <tranship/fabric/seam/team_slots.hpp>
#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>

namespace tranship {

class World;

/// What a rank can do with a peer: load and store its memory, or only send it messages.
enum class PeerKind { reachable, messaged };

/// How the ranks of one team meet. One object per rank and team.
class Meeting {
 public:
  virtual ~Meeting() = default;
  /// Returns when all members have called it. What any of them wrote before is seen by all after it. Throws `mismatch`
  /// on every member when their calls differ.
  virtual void meet(World& world, const Call& call, CallSite where) = 0;
  /// The same, with `size_bytes` from each member, in their order, to `all` of each.
  virtual void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
                      CallSite where) = 0;
  /// The same, with `size_bytes` from one member to `data` of all others. Each of them reads that member alone.
  virtual void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
                      CallSite where) = 0;
  /// Calls that this rank has made in this slot; it may have served other teams before. All members must begin with the
  /// same number, which is not less than any of theirs, and meet in a larger team before they meet here.
  virtual std::uint64_t calls() const noexcept = 0;
  virtual void begin_at(std::uint64_t calls) = 0;
};

class Fabric {
 public:
  Fabric(Rank rank, int size, Board& board) : rank_(rank), size_(size), board_(&board) {}
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  Rank rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  Board& board() const noexcept { return *board_; }

  /// The rank that a rank of this world was launched as: another one in a sub-world.
  virtual Rank launched_rank(Rank rank) const noexcept { return rank; }
  virtual PeerKind peer_kind(Rank peer) const noexcept = 0;
  /// The ranks that this one shares memory with, itself included; those of its machine.
  virtual Members sharing() const { return {.count = size_}; }
  virtual Members on_this_machine() const { return {.count = size_}; }
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

  virtual HeapPlace heap() const = 0;
  /// What the ranks of this machine together can still obtain, when they have been granted so many bytes for their
  /// heaps, as far as is known; never more than INT64_MAX.
  virtual Index available_bytes([[maybe_unused]] Index granted_bytes) const { return INT64_MAX; }
  /// The memory of blocks of this size and more is granted page by page, when it is touched: a program may ask for
  /// more of it than the machine has, and touch a part.
  static constexpr std::size_t sparse_bytes_min = std::size_t(256) << 20;
  /// Obtains the memory of a part of this rank's own heap, where it is not sparse; fails with `no_memory`.
  virtual Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) = 0;
  virtual void give_back(std::size_t offset_bytes, std::size_t size_bytes) noexcept = 0;
  /// Makes a part of this rank's own heap and as many bytes at `memory`, both of whole pages, one memory that holds
  /// what `memory` holds. They part when what is returned goes, and with them the part's `block`, which it keeps; where
  /// the system has no pages for `memory` then, never. Fails with `invalid_use`, `no_memory` or `unsupported`.
  virtual Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes,
                                             std::size_t size_bytes, void* memory) = 0;
  /// Whether ranks have static variables of their own.
  virtual bool has_own_statics() const noexcept = 0;
  /// What World::local_memory says.
  virtual std::shared_ptr<void> local_memory(std::size_t size_bytes) = 0;
  /// Keeps the heaps mapped for as long as it is held, even after this object is gone.
  virtual std::shared_ptr<void> lifetime() const = 0;
  /// Carries the transfers of one context to the peers that heap() does not reach; nullptr where it reaches all.
  /// `world` is the one that waits for them.
  virtual std::unique_ptr<Transport> transport(World& world) = 0;
  /// Sees what this rank does to words, where order is checked; nullptr elsewhere.
  virtual std::shared_ptr<FlagWatch> flag_watch() { return nullptr; }

  /// How often a wait looks, one look after the other, before it does anything else; then, for how long it looks with
  /// pauses and gives its core away once a microsecond or so, before it calls idle() for each look.
  virtual int spin_rounds() const noexcept = 0;
  virtual std::int64_t spin_ns() const noexcept = 0;
  /// How often it calls idle() then before it shows on the board and looks for failures.
  virtual int unseen_rounds() const noexcept = 0;
  /// Gives the core away; `round` counts from 0 within one wait. Returns within a millisecond or so; with hundreds of
  /// ranks on a core within some tens.
  virtual void idle(int round) = 0;
  /// Whether a wait until then is over, on the clock of this back-end.
  virtual bool passed(Deadline deadline) const { return deadline.passed(); }

  /// Polls of this rank from one look at failures and deadlines to the next (polling.hpp); 0: those of poll_ns().
  virtual int polls_per_look() const noexcept { return 0; }
  /// For about how long a rank polls until it looks at these and, if it polls in vain, gives its core away once.
  virtual std::int64_t poll_ns() const noexcept = 0;

 private:
  Rank rank_;
  int size_;
  Board* board_;
};

}  // namespace tranship
