// Private: MoveList, moves that may run in any order. They run in the order of the memory that they write, and moves
// that pack in the order of the memory that they read.
//
// The ghosts of a row of an array come in several moves: a few cells before the row, the row, a few cells after it. Run
// move by move, they would visit every line and page of the array several times. So moves whose rows lie side by side
// in the target share their outer loops (a walk), and each place is visited once (docs/copying.md has the gain).
//
// A list knows slots, not addresses. It runs with a binding, the base addresses of the slots that it uses, so one list
// serves all arrays with the same layout. A walk looks the bases up once, not for each row.
#pragma once

#include <span>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/lower/lowering.hpp>

namespace tranship {

enum class MoveOrder : std::uint8_t {
  any,    ///< no two moves write the same byte, so they may be reordered
  given,  ///< combinations: run one after the other as given
};

enum class MoveSide : std::uint8_t { source, target };

/// Binding of slots on this host: `(side, slot, array)` returns the first byte of an array of a slot, or of the staging
/// buffer. It is called only for slots that moves use, and never for constants.
using HostBases = FunctionRef<std::byte*(MoveSide, int, int)>;

class MoveList {
 public:
  MoveList() = default;
  /// Takes moves that have been routed.
  MoveList(std::vector<LoweredMove> moves, MoveOrder order, CopyMethod way);

  /// Appends the base addresses for run(), one for each of the ends().
  void bind(HostBases bases, int array, std::vector<std::byte*>& out) const;
  /// Returns the number of slots that the list uses on both sides.
  std::size_t ends() const noexcept { return ends_.size(); }

  /// Makes all moves. Their stores are ordered before the caller's later stores.
  void run(std::span<std::byte* const> bases) const;
  /// Returns the number of parts. Large lists are cut into parts of about the same size; several ranks may run
  /// different parts at once, each part once. Ranks that have lowered the same transfers have the same parts. At least
  /// one; exactly one for combinations.
  int parts() const noexcept { return int(first_stretches_.size()) - 1; }
  /// Returns into how many parts this many bytes are cut.
  static int parts_of(Index bytes) noexcept;
  void run_part(int part, std::span<std::byte* const> bases) const;
  Index bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_ == 0; }

  /// The numbers that explain() shows.
  struct Summary {
    Index moves = 0;
    Index walks = 0;          ///< moves that run together count once
    Index runs = 0;           ///< stretches that are contiguous on both sides
    Index run_bytes_min = 0;  ///< length of the shortest run
    Index run_bytes_mean = 0;
    Index shapes[4] = {};  ///< bytes by BlockShape
  };
  Summary summary() const;

 private:
  /// A slot seen from one side of the moves: on two ranks it is two arrays.
  struct End {
    MoveSide side = MoveSide::source;
    int slot = 0;
    friend bool operator==(const End&, const End&) = default;
  };
  /// Indices of the two ends of a move in `ends_`.
  struct Ends {
    int source = 0;
    int target = 0;
  };
  /// Distance from one turn of a loop to the next, after all inner loops have ended.
  struct Step {
    long long source = 0;
    long long target = 0;
  };
  /// One move of a walk. Small, because it is read from memory whenever other data has evicted it from the caches.
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
  /// A move that runs alone.
  struct Single {
    Ends ends;
    LoweredMove move;
  };
  /// The loops around rows that pieces have in common; Rows has the last ones.
  struct Walk {
    std::vector<long long> extents;  ///< of the loops around Rows
    long long outermost = 0;         ///< extent of the outermost loop, which may be one of Rows
    long long row_count = 0;         ///< of each piece, in total
    std::vector<Piece> pieces;
  };

  /// A part of a move or a walk: [lower, upper) of its outermost loop.
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
  std::vector<Stretch> stretches_;                  ///< in the order in which they run
  std::vector<std::size_t> first_stretches_ = {0};  ///< of each part, and the end
  Index bytes_ = 0;
};

}  // namespace tranship
