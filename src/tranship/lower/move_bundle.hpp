// MoveBundle: all moves of one message: lists of moves, each of which serves one array or several that are laid out
// alike.
#pragma once

#include <vector>

#include <tranship/lower/move_list.hpp>

namespace tranship {

class MoveBundle {
 public:
  MoveBundle() = default;
  MoveBundle(MoveOrder order, CopyMethod way) : order_(order), way_(way) {}

  /// Lists are run in the order in which they are added, and each list as often as it has shifts; at least once.
  void add(std::vector<LoweredMove> moves, std::vector<MoveShift> shifts);

  /// Makes all moves. Their stores are ordered before what the caller stores afterwards.
  void run() const {
    for (const List& list : lists_)
      for (const MoveShift& shift : list.shifts) list.moves.run(shift);
  }
  /// As MoveList's: parts of about the same size, the same for all who have added the same lists; at least one.
  int parts() const noexcept { return cuts_.empty() ? 1 : int(cuts_.size()); }
  void run_part(int part) const;
  Index bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }
  MoveList::Summary summary() const;

 private:
  struct List {
    MoveList moves;
    std::vector<MoveShift> shifts;
  };
  /// One part of a list, with one of its shifts.
  struct Piece {
    std::size_t list = 0;
    std::size_t shift = 0;
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
