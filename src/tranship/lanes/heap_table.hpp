// Detail: HeapTable, the addresses at which one rank finds the symmetric heaps of all ranks of a world. Contexts,
// kernels (rma.hpp) and code that is compiled at run time all use it to find the target of a direct transfer.
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

/// A value that can be passed to kernels. The memory behind `direct` lives as long as the world.
struct HeapTable {
  unsigned char* own = nullptr;            ///< the heap of this rank
  unsigned long long size_bytes = 0;       ///< of each heap; 0 if a call must check every access
  unsigned char* const* direct = nullptr;  ///< by rank: its heap, or nullptr if this rank cannot load and store it
  int count = 0;                           ///< entries of `direct`; ranks from `count` on are not direct
  bool is_complete = false;                ///< all ranks of the world are direct
  /// True if all heaps lie in memory of one device and, while kernels run, only kernels of that device use them. Fences
  /// then reach only that device (Reach of kernels/word.hpp). If it is set wrongly, accesses are misordered.
  bool is_on_one_device = false;
  /// The distance from each heap in `direct` to the next, if all distances are equal, else 0. On a card, a computed
  /// address saves a load from the L2 in each call: 0.2 us of 1.2 for a signal there and back (docs/gpu-facts.md).
  long long spacing_bytes = 0;
  unsigned char* first = nullptr;  ///< heap of rank 0, if spacing_bytes is not 0

  /// Returns the heap of a rank, or nullptr for a rank that is not direct and for a number that is no rank.
  TRANSHIP_SHARED unsigned char* heap_of(int peer) const {
    if (static_cast<unsigned>(peer) >= static_cast<unsigned>(count)) return nullptr;
    return spacing_bytes != 0 ? first + peer * spacing_bytes : direct[peer];
  }
  TRANSHIP_SHARED bool is_direct(int peer) const { return heap_of(peer) != nullptr; }

  /// Returns the offset of `local` in this rank's heap. An address before the heap gives a number larger than any heap.
  TRANSHIP_SHARED unsigned long long offset_of(const void* local) const {
    return reinterpret_cast<unsigned long long>(local) - reinterpret_cast<unsigned long long>(own);
  }
  TRANSHIP_SHARED bool contains(unsigned long long offset, unsigned long long bytes) const {
    return bytes <= size_bytes && offset <= size_bytes - bytes;
  }
  /// Returns the address at `peer` of the bytes that begin at `local` in this rank's heap. Returns nullptr if they do
  /// not lie in the heap or the peer is not direct.
  TRANSHIP_SHARED unsigned char* at(const void* local, unsigned long long bytes, int peer) const {
    const unsigned long long offset = offset_of(local);
    if (!contains(offset, bytes)) return nullptr;
    unsigned char* const heap = heap_of(peer);
    return heap ? heap + offset : nullptr;
  }
};

}  // namespace tranship
