// Private: MoveBundle, all moves of one message with the host's binding of them. It holds lists of moves, each of which
// serves one array or several with the same layout, and executes them in memory that this host addresses.
#pragma once

#include <span>
#include <vector>

#include <tranship/lower/move_list.hpp>

namespace tranship {

/// The arrays of a slot that a list of moves serves: `count` arrays with the same layout.
struct MoveArrays {
  int first = 0;
  int count = 1;
  /// Distance in the staging buffer from the packed data of one array to that of the next.
  Index staging_pitch_bytes = 0;
};

class MoveBundle {
 public:
  MoveBundle() = default;
  MoveBundle(MoveOrder order, CopyMethod way) : order_(order), way_(way) {}

  /// Adds a list. Lists run in the order in which they are added, each list once for each of its arrays. bind() must
  /// come before the first run.
  void add(std::vector<LoweredMove> moves, MoveArrays arrays = {});
  /// Sets where the slots of all lists lie on this host.
  void bind(HostBases bases);

  /// Makes all moves. Their stores are ordered before the caller's later stores.
  void run() const;
  /// At least one part; all are of about the same size, and bundles with the same lists have the same parts (see
  /// MoveList).
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
  /// One part of a list for one of its arrays.
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
  // Used if there are several parts.
  std::vector<Piece> pieces_;
  std::vector<std::size_t> cuts_;  // the end of each part in `pieces_`
};

}  // namespace tranship
