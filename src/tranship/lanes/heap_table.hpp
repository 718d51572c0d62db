// Detail: HeapTable, where the symmetric heaps of all ranks of a world lie in the addresses of one rank. Contexts,
// kernels (rma.hpp) and code that is compiled at run time all find the target of a direct transfer here, and nowhere
// else.
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

/// A value that kernels can take. What `direct` points to lives as long as the world.
struct HeapTable {
  unsigned char* own = nullptr;            ///< the heap of this rank
  unsigned long long size_bytes = 0;       ///< of each heap; 0 where every access is checked by a call
  unsigned char* const* direct = nullptr;  ///< by rank: its heap, or nullptr where this rank cannot load and store it
  int count = 0;                           ///< entries of `direct`; ranks from `count` on are not direct
  bool is_complete = false;                ///< all ranks of the world are direct
  /// All heaps lie in memory of one device, and while kernels run, only kernels of that device use them. Then fences
  /// need not reach farther (Reach of kernels/word.hpp). Wrong orders come of it where it is not so.
  bool is_on_one_device = false;
  /// Where the heaps in `direct` lie at equal distances, the distance from each to the next, and 0 elsewhere. On a
  /// card, an address that is computed saves a load from the L2 in each call: 0.2 us of 1.2 for a signal there and back
  /// (docs/gpu-facts.md).
  long long spacing_bytes = 0;
  unsigned char* first = nullptr;  ///< the heap of rank 0, where there is a spacing

  /// nullptr for a rank that is not direct, and for a number that is no rank.
  TRANSHIP_SHARED unsigned char* heap_of(int peer) const {
    if (static_cast<unsigned>(peer) >= static_cast<unsigned>(count)) return nullptr;
    return spacing_bytes != 0 ? first + peer * spacing_bytes : direct[peer];
  }
  TRANSHIP_SHARED bool is_direct(int peer) const { return heap_of(peer) != nullptr; }

  /// Returns how far `local` lies behind the begin of this rank's heap; more than any heap has for what lies before it.
  TRANSHIP_SHARED unsigned long long offset_of(const void* local) const {
    return reinterpret_cast<unsigned long long>(local) - reinterpret_cast<unsigned long long>(own);
  }
  TRANSHIP_SHARED bool contains(unsigned long long offset, unsigned long long bytes) const {
    return bytes <= size_bytes && offset <= size_bytes - bytes;
  }
  /// Returns where the bytes that begin at `local` in this rank's heap are at `peer`; nullptr where they do not lie in
  /// the heap or the peer is not direct.
  TRANSHIP_SHARED unsigned char* at(const void* local, unsigned long long bytes, int peer) const {
    const unsigned long long offset = offset_of(local);
    if (!contains(offset, bytes)) return nullptr;
    unsigned char* const heap = heap_of(peer);
    return heap ? heap + offset : nullptr;
  }
};

}  // namespace tranship
