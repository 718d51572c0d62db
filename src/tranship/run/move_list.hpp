// MoveList: moves that may be made in any order, made in the order of the memory that they write; of those that pack,
// in the order of the memory that they read.
//
// The ghosts of one row of an array come in several moves: a few cells before it, the row, a few cells after it. Move
// by move, every line and page of the array is visited several times. Here, moves whose rows lie side by side in the
// target walk their outer loops together, so that each place is visited once (docs/copying.md has what that gains).
#pragma once

#include <vector>

#include <tranship/kernels/host_move.hpp>
#include <tranship/run/lowering.hpp>

namespace tranship {

enum class MoveOrder : std::uint8_t {
  any,    ///< no two moves write one byte: they may change places
  given,  ///< sums: one after the other as they stand
};

class MoveList {
 public:
  MoveList() = default;
  MoveList(std::vector<LoweredMove> moves, MoveOrder order);

  /// Makes all moves. Their stores are ordered before what the caller stores afterwards.
  void run(HostWay way) const;
  /// Large lists come in parts of about the same size, which several ranks may make at once, each part once. Whoever
  /// has lowered the same transfers has the same parts. At least one; one for sums.
  int parts() const noexcept { return int(first_stretches_.size()) - 1; }
  void run_part(int part, HostWay way) const;
  Index bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }

  /// What explain() tells of it.
  struct Summary {
    Index moves = 0;
    Index walks = 0;          ///< moves that are made together count once
    Index run_bytes_min = 0;  ///< the shortest stretch that is contiguous on both sides
    Index run_bytes_mean = 0;
    Index shapes[4] = {};  ///< bytes by BlockShape
  };
  Summary summary() const;

 private:
  /// One of the moves of a walk: rows at `source` and `target`, in the loops of the walk.
  struct Piece {
    std::byte* source = nullptr;
    std::byte* target = nullptr;
    long long row_bytes = 0;
    long long source_strides[block_dims_max] = {};
    long long target_strides[block_dims_max] = {};
  };
  /// Loops over rows that pieces have in common; the last dimension counts rows.
  struct Walk {
    CopyBlock loops;  ///< extents only
    std::vector<Piece> pieces;
  };

  /// Some of the outermost loop of a move or a walk: [lower, upper) of it.
  struct Stretch {
    Index entry = 0;  ///< moves_[entry], or walks_[-1 - entry]
    long long lower = 0;
    long long upper = 0;
  };

  long long outermost(Index entry) const;
  Index bytes_of(Index entry) const;
  bool is_cut_anywhere(Index entry) const;
  void cut_into_parts(const std::vector<Index>& entries, int parts_max);
  void run_stretch(const Stretch& stretch, HostWay way) const;
  void run_together(const Walk& walk, long long lower, long long upper, HostWay way) const;

  std::vector<LoweredMove> moves_;  ///< those made alone
  std::vector<Walk> walks_;
  std::vector<Stretch> stretches_;                  ///< in the order in which they are made
  std::vector<std::size_t> first_stretches_ = {0};  ///< of each part, and the end
  Index bytes_ = 0;
};

}  // namespace tranship
