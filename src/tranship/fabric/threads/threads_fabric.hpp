// The threads back-end: ranks are threads of one process, all memory is reachable as it is. launch() makes it.
#pragma once

#include <memory>
#include <vector>

#include <tranship/fabric/barrier.hpp>
#include <tranship/fabric/board.hpp>
#include <tranship/fabric/fabric.hpp>

namespace tranship {

/// What the ranks of one launch share. Outlives all their threads.
class ThreadsShared {
 public:
  explicit ThreadsShared(int ranks);
  Board& board() noexcept { return board_; }

 private:
  friend class ThreadsFabric;

  /// What a rank brings to all_gather. Two per rank, used in turn: a rank writes one again only after a later
  /// all_gather, which all ranks enter after they have read it. So one barrier per call is enough.
  struct alignas(64) Offer {
    std::vector<unsigned char> bytes;
  };

  int size_;
  Board board_;
  std::unique_ptr<RealSync::Word[]> arrivals_;
  std::vector<Offer> offers_[2];
  std::shared_ptr<WordBlock> new_words_;
};

class ThreadsFabric final : public Fabric {
 public:
  ThreadsFabric(ThreadsShared& shared, Rank rank);

  PeerKind peer_kind(Rank peer) const noexcept override;
  void* reach(Rank peer, const void* address) const noexcept override;
  void barrier(World& world, CallSite where) override;
  void all_gather(World& world, const void* mine, std::size_t size_bytes, void* all, CallSite where) override;
  Words words(World& world, int count, const char* label, CallSite where) override;
  int spin_rounds() const noexcept override { return spin_rounds_; }
  void idle(int round) noexcept override;

 private:
  void meet(World& world, WaitNote note);
  /// The offers of all ranks in this round, once all have made theirs.
  const std::vector<ThreadsShared::Offer>& offer(World& world, const void* mine, std::size_t size_bytes, WaitNote note);

  ThreadsShared& shared_;
  FlagBarrier<RealSync> barrier_;
  int offers_made_ = 0;
  int spin_rounds_;
};

}  // namespace tranship
