// Private: PairedCopy: large transfers between two ranks that both have time for them. Both ranks call it, and each
// copies parts until none is left, so that two cores share the work and neither waits for the other to begin a part.
#pragma once

#include <cstdint>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/base/sync.hpp>
#include <tranship/fabric/symmetric.hpp>
#include <tranship/fabric/sync/claim.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

class PairedCopy {
 public:
  /// Collective. Serves copies between any two ranks; each pair must make its copies in the same order.
  explicit PairedCopy(World& world, CallSite where = CallSite::here());

  /// Called by the ranks `from` and `to` only, with the same objects. When it returns at `to`, the target there holds
  /// the elements of `source` at `from`; when it returns at `from`, the source may be written again. Moves as many
  /// elements as the smaller array has. If one rank cannot load the memory of the other, `from` puts all of it. Throws
  /// `mismatch` on both ranks when their arguments differ, `invalid_use` on other ranks, and otherwise as a wait does.
  /// After a failed wait, this rank makes no further copies with that peer, and neither touches the other's memory.
  template <Transferable T>
  void copy(Symmetric<T> target, std::type_identity_t<Symmetric<const T>> source, Rank from, Rank to,
            CallSite where = CallSite::here()) {
    copy_bytes(target.local(), source.local(),
               static_cast<std::size_t>(std::min(target.size_bytes(), source.size_bytes())), from, to, where);
  }

 private:
  /// Arguments that both ranks must give alike.
  struct Offer {
    Index from = 0, target = 0, source = 0, bytes = 0;
    friend bool operator==(const Offer&, const Offer&) = default;
  };
  /// Words by which a peer informs this rank. The two offers are used in turn: a peer overwrites one only after this
  /// rank has read it.
  struct Slot {
    std::uint64_t entered = 0;
    std::uint64_t arrived = 0;
    Offer offers[2] = {};
  };

  /// State of the copies with one peer; both ranks count alike.
  struct Pair {
    std::uint64_t epoch = 0;
    bool is_broken = false;
  };
  class Attempt;

  void copy_bytes(void* target, const void* source, std::size_t bytes, Rank from, Rank to, CallSite where);
  void share(std::byte* target, const std::byte* source, std::size_t bytes, Rank from, Rank to, std::uint64_t epoch,
             CallSite where);
  World& world_;
  SymmetricArray<Slot> slots_;  ///< by peer
  SharedFlags states_;          ///< of both halves of copies to this rank, by source rank
  std::vector<Pair> pairs_;
};

}  // namespace tranship
