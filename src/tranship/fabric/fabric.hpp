// Fabric: the seam between World and a back-end. One object per rank; it says what differs between threads, processes,
// a simulator and clusters. What is on the fast path (words, direct loads and stores) does not go through it.
#pragma once

#include <cstddef>

#include <tranship/base/call_site.hpp>
#include <tranship/base/index.hpp>
#include <tranship/fabric/board.hpp>
#include <tranship/fabric/words.hpp>

namespace tranship {

class World;

/// What a rank can do with a peer: load and store its memory, or only send it messages.
enum class PeerKind { reachable, messaged };

class Fabric {
 public:
  Fabric(Rank rank, int size, Board& board) : rank_(rank), size_(size), board_(&board) {}
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  Rank rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  Board& board() const noexcept { return *board_; }

  /// The documentation of these is World's, which forwards to them; `peer` has been checked. They wait through `world`,
  /// so that every wait has a deadline and a note.
  virtual PeerKind peer_kind(Rank peer) const noexcept = 0;
  virtual void* reach(Rank peer, const void* address) const noexcept = 0;
  virtual void barrier(World& world, CallSite where) = 0;
  virtual void all_gather(World& world, const void* mine, std::size_t size_bytes, void* all, CallSite where) = 0;
  virtual Words words(World& world, int count, const char* label, CallSite where) = 0;

  /// How often a wait looks before it calls idle().
  virtual int spin_rounds() const noexcept = 0;
  /// Gives the core away; `round` counts from 0 within one wait. Returns within a millisecond or so.
  virtual void idle(int round) noexcept = 0;

 private:
  Rank rank_;
  int size_;
  Board* board_;
};

}  // namespace tranship
