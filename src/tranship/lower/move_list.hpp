// MoveList: moves that may be made in any order, made in the order of the memory that they write; of those that pack,
// in the order of the memory that they read.
//
// The ghosts of one row of an array come in several moves: a few cells before it, the row, a few cells after it. Move
// by move, every line and page of the array is visited several times. Here, moves whose rows lie side by side in the
// target walk their outer loops together, so that each place is visited once (docs/copying.md has what that gains).
#pragma once

#include <vector>

#include <tranship/kernels/host/host_move.hpp>
#include <tranship/lower/lowering.hpp>

namespace tranship {

enum class MoveOrder : std::uint8_t {
  any,    ///< no two moves write one byte: they may change places
  given,  ///< combinations: one after the other as they stand
};

class MoveList {
 public:
  MoveList() = default;
  MoveList(std::vector<LoweredMove> moves, MoveOrder order, CopyMethod way);

  /// Makes all moves. Their stores are ordered before what the caller stores afterwards.
  void run(MoveShift shift = {}) const;
  /// Large lists come in parts of about the same size, which several ranks may make at once, each part once. A rank
  /// that has lowered the same transfers has the same parts. At least one; one for combinations.
  int parts() const noexcept { return int(first_stretches_.size()) - 1; }
  /// Into how many parts so many bytes are cut.
  static int parts_of(Index bytes) noexcept;
  void run_part(int part, MoveShift shift = {}) const;
  Index bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }

  /// What explain() tells of it.
  struct Summary {
    Index moves = 0;
    Index walks = 0;          ///< moves that are made together count once
    Index runs = 0;           ///< stretches that are contiguous on both sides
    Index run_bytes_min = 0;  ///< of the shortest one
    Index run_bytes_mean = 0;
    Index shapes[4] = {};  ///< bytes by BlockShape
  };
  Summary summary() const;

 private:
  /// How far it is from one turn of a loop to the next, when all loops within have come to their ends.
  struct Step {
    long long source = 0;
    long long target = 0;
  };
  /// One of the moves of a walk. Small, for it is read from memory whenever the caches have held other things since.
  struct Piece {
    const std::byte* source = nullptr;
    std::byte* target = nullptr;
    Rows rows;  ///< of one turn of the loops
    RowCopy copy = nullptr;
    long long source_stride = 0;  ///< of the outermost loop
    long long target_stride = 0;
    std::vector<Step> steps;  ///< by loop
  };
  /// Loops around rows that pieces have in common; the last ones are those of Rows.
  struct Walk {
    std::vector<long long> extents;  ///< of the loops around Rows
    long long outermost = 0;         ///< extent of the outermost loop, be it one of Rows
    long long row_count = 0;         ///< of each piece, in all
    std::vector<Piece> pieces;
  };

  /// Some of the outermost loop of a move or a walk: [lower, upper) of it.
  struct Stretch {
    Index entry = 0;  ///< moves_[entry], or walks_[-1 - entry]
    long long lower = 0;
    long long upper = 0;
  };

  static Piece piece_of(const LoweredMove& move, CopyMethod way);
  long long outermost(Index entry) const;
  Index bytes_of(Index entry) const;
  bool is_cut_anywhere(Index entry) const;
  void cut_into_parts(const std::vector<Index>& entries, Index parts);
  void run_stretch(const Stretch& stretch, MoveShift shift) const;
  void run_walk(const Walk& walk, long long lower, long long upper, MoveShift shift) const;

  CopyMethod way_;
  std::vector<LoweredMove> moves_;  ///< those made alone
  std::vector<Walk> walks_;
  std::vector<Stretch> stretches_;                  ///< in the order in which they are made
  std::vector<std::size_t> first_stretches_ = {0};  ///< of each part, and the end
  Index bytes_ = 0;
};

}  // namespace tranship
