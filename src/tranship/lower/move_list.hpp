// Private: MoveList, moves that may be made in any order, made in the order of the memory that they write; of those
// that pack, in the order of the memory that they read.
//
// The ghosts of one row of an array come in several moves: a few cells before it, the row, a few cells after it. Move
// by move, every line and page of the array is visited several times. Here, moves whose rows lie side by side in the
// target walk their outer loops together, so that each place is visited once (docs/copying.md has what that gains).
//
// A list knows slots and no addresses. It runs with a binding, the base addresses of the slots that it uses, so one
// list serves all arrays that lie alike; a walk looks them up once, and no row does.
#pragma once

#include <span>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/lower/lowering.hpp>

namespace tranship {

enum class MoveOrder : std::uint8_t {
  any,    ///< no two moves write one byte: they may change places
  given,  ///< combinations: one after the other as they stand
};

enum class MoveSide : std::uint8_t { source, target };

/// Where the slots lie on this host: `(side, slot, array)` gives the first byte of an array of a slot, or of the
/// staging buffer. Only the slots that moves use are asked for, and constants never.
using HostBases = FunctionRef<std::byte*(MoveSide, int, int)>;

class MoveList {
 public:
  MoveList() = default;
  /// Of moves that have been routed.
  MoveList(std::vector<LoweredMove> moves, MoveOrder order, CopyMethod way);

  /// Appends the base addresses that the list runs with, one for each of its ends().
  void bind(HostBases bases, int array, std::vector<std::byte*>& out) const;
  /// Slots that it uses, on both sides.
  std::size_t ends() const noexcept { return ends_.size(); }

  /// Makes all moves. Their stores are ordered before what the caller stores afterwards.
  void run(std::span<std::byte* const> bases) const;
  /// Large lists come in parts of about the same size, which several ranks may make at once, each part once. A rank
  /// that has lowered the same transfers has the same parts. At least one; one for combinations.
  int parts() const noexcept { return int(first_stretches_.size()) - 1; }
  /// Into how many parts so many bytes are cut.
  static int parts_of(Index bytes) noexcept;
  void run_part(int part, std::span<std::byte* const> bases) const;
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
  /// A slot as it is seen from one side of the moves: on two ranks it is two arrays.
  struct End {
    MoveSide side = MoveSide::source;
    int slot = 0;
    friend bool operator==(const End&, const End&) = default;
  };
  /// The numbers of the two ends of a move.
  struct Ends {
    int source = 0;
    int target = 0;
  };
  /// How far it is from one turn of a loop to the next, when all loops within have come to their ends.
  struct Step {
    long long source = 0;
    long long target = 0;
  };
  /// One of the moves of a walk. Small, for it is read from memory whenever the caches have held other things since.
  struct Piece {
    Ends ends;
    Index source_bytes = 0;  ///< from the base of its end to its first byte
    Index target_bytes = 0;
    Rows rows;  ///< of one turn of the loops
    RowCopy copy = nullptr;
    long long source_stride = 0;  ///< of the outermost loop
    long long target_stride = 0;
    std::vector<Step> steps;  ///< by loop
  };
  /// A move that is made alone.
  struct Single {
    Ends ends;
    LoweredMove move;
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
    Index entry = 0;  ///< singles_[entry], or walks_[-1 - entry]
    long long lower = 0;
    long long upper = 0;
  };

  int end_of(MoveSide side, int slot);
  Ends ends_of(const LoweredMove& move);
  Piece piece_of(const LoweredMove& move);
  long long outermost(Index entry) const;
  Index bytes_of(Index entry) const;
  bool is_cut_anywhere(Index entry) const;
  void cut_into_parts(const std::vector<Index>& entries, Index parts);
  void run_stretch(const Stretch& stretch, std::span<std::byte* const> bases) const;
  void run_walk(const Walk& walk, long long lower, long long upper, std::span<std::byte* const> bases) const;

  CopyMethod way_;
  std::vector<End> ends_;
  std::vector<Single> singles_;
  std::vector<Walk> walks_;
  std::vector<Stretch> stretches_;                  ///< in the order in which they are made
  std::vector<std::size_t> first_stretches_ = {0};  ///< of each part, and the end
  Index bytes_ = 0;
};

}  // namespace tranship
