// Private: PairedCopy, large transfers between two ranks that both have time for them. Both call it, and each copies
// parts until none is left: two cores move what one of them would, and neither waits for the other to begin a part.
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
  /// Collective. For copies between any two ranks, of which each pair makes its own in the same order.
  explicit PairedCopy(World& world, CallSite where = CallSite::here());

  /// Called by the ranks `from` and `to`, and by no others, with the same objects: what `source` holds at `from` is in
  /// `target` at `to` when it returns there. When it returns at `from`, the source may be written again. As many
  /// elements as the smaller one has. Where one rank cannot load the memory of the other, `from` puts it all. Throws
  /// `mismatch` on both when their arguments differ, `invalid_use` on other ranks, else as a wait; then this rank makes
  /// no more copies with that one, and neither touches the other's memory.
  template <Transferable T>
  void copy(Symmetric<T> target, std::type_identity_t<Symmetric<const T>> source, Rank from, Rank to,
            CallSite where = CallSite::here()) {
    copy_bytes(target.local(), source.local(),
               static_cast<std::size_t>(std::min(target.size_bytes(), source.size_bytes())), from, to, where);
  }

 private:
  /// What both sides must say alike.
  struct Offer {
    Index from = 0, target = 0, source = 0, bytes = 0;
    friend bool operator==(const Offer&, const Offer&) = default;
  };
  /// What a peer tells this rank. Offers are used in turn: a peer makes the next one but one only after this rank has
  /// read this one.
  struct Slot {
    std::uint64_t entered = 0;
    std::uint64_t arrived = 0;
    Offer offers[2] = {};
  };

  /// Copies with one peer, which has as many.
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
  SharedFlags states_;          ///< of both halves of copies to this rank, by who they are from
  std::vector<Pair> pairs_;
};

}  // namespace tranship
