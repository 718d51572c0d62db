// Private: MoveBundle, all moves of one message, and the host's binding of them: lists of moves, each of which serves
// one array or several that lie alike. It is the executor of moves for memory that this host addresses.
#pragma once

#include <span>
#include <vector>

#include <tranship/lower/move_list.hpp>

namespace tranship {

/// The arrays of a slot that a list of moves serves: `count` of them, which lie alike.
struct MoveArrays {
  int first = 0;
  int count = 1;
  /// What is packed of each of them lies in the staging buffer so far behind that of the one before.
  Index staging_pitch_bytes = 0;
};

class MoveBundle {
 public:
  MoveBundle() = default;
  MoveBundle(MoveOrder order, CopyMethod way) : order_(order), way_(way) {}

  /// Lists are run in the order in which they are added, and each list once for each of its arrays. No list runs until
  /// it is bound.
  void add(std::vector<LoweredMove> moves, MoveArrays arrays = {});
  /// Says where the slots of all lists lie on this host.
  void bind(HostBases bases);

  /// Makes all moves. Their stores are ordered before what the caller stores afterwards.
  void run() const;
  /// As MoveList's: parts of about the same size, the same for all who have added the same lists; at least one.
  int parts() const noexcept { return cuts_.empty() ? 1 : int(cuts_.size()); }
  void run_part(int part) const;
  Index bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }
  MoveList::Summary summary() const;

 private:
  struct List {
    MoveList moves;
    MoveArrays arrays;
    std::vector<std::byte*> bases;  ///< of the first array, then of the next

    std::span<std::byte* const> bases_of(int k) const;
  };
  /// One part of a list, for one of its arrays.
  struct Piece {
    std::size_t list = 0;
    int array = 0;
    int part = 0;
  };
  void cut();

  MoveOrder order_ = MoveOrder::any;
  CopyMethod way_;
  std::vector<List> lists_;
  Index bytes_ = 0;
  // Where there are several parts.
  std::vector<Piece> pieces_;
  std::vector<std::size_t> cuts_;  // the end of each part among the pieces
};

}  // namespace tranship
