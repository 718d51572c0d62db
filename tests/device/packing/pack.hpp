// Declares the packing kernel on a card: a list that is uploaded once, and its launch with the bases of each call. The
// kernel is kernels/move_pieces.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tranship/kernels/host/piece_list.hpp>

#include "support/card.hpp"

namespace tranship::device {

using namespace packing;

/// Returns the number of groups that gives work to each multiprocessor, for PieceList::lay_out.
unsigned pack_groups_min();

/// Describes how a list is spread over blocks. By default each group has a block: the card hands out blocks in order as
/// others end, so that running blocks touch memory side by side, and none waits for a slow one.
struct PackGrid {
  enum class Hints { plain, streaming };

  Order order = Order::strided;
  unsigned blocks_max = ~0u;
  Hints hints = Hints::plain;  ///< for 16-byte vectors in lean lists
};

/// Holds a laid out list in the card's memory. Uploading another one into the same object reuses its memory.
class UploadedList {
 public:
  UploadedList() = default;
  UploadedList(const UploadedList&) = delete;
  UploadedList& operator=(const UploadedList&) = delete;
  ~UploadedList() { cudaFree(memory_); }

  /// Blocks the host until the list has arrived.
  void upload(const PieceList& list);
  const PieceListView& view() const { return view_; }
  bool has_transposed() const { return has_transposed_; }
  /// Throws unless these bases have the alignments that the list was made for; bases in the card's memory are not
  /// checked.
  void require(const Bases& bases) const;
  /// Makes warps search for their pieces from now on.
  void forget_starts() { view_.starts = nullptr; }

 private:
  unsigned char* memory_ = nullptr;
  std::size_t capacity_bytes_ = 0;
  std::vector<unsigned char> staging_;
  PieceListView view_;
  bool has_transposed_ = false;
  std::vector<int> alignments_;
};

/// Returns the number of blocks of this list that run on this card at the same time.
unsigned pack_blocks(const UploadedList& list);

/// Enqueues the launch. Source and target bytes must be disjoint.
void pack(const UploadedList& list, const Bases& bases, cudaStream_t stream, const PackGrid& grid = {});

/// Returns "lean: registers 47, local memory 0 bytes, ..., blocks an SM 5; ...", as the driver has loaded the kernels.
std::string pack_resources();

}  // namespace tranship::device
