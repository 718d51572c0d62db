// Private: PieceList makes the pieces of a list of moves, on the host. Each move is canonicalised, gets the widest
// vectors that bases, offsets, strides and row lengths allow, and is cut until three loops and 31 bits are enough for
// each piece. Moves must not read what the list writes, and must not write a byte twice. A second write within a move
// is refused, except for target strides of zero, where the last element stays; among moves it is not checked. A move
// that negates or combines keeps vectors of whole elements, and is refused where it is not aligned to them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <tranship/kernels/block_move.hpp>
#include <tranship/kernels/piece.hpp>

namespace tranship::packing {

/// Bounds a piece; tests make the limits small.
struct PieceLimits {
  long long span_bytes = (1ll << 31) - 1;
  long long vectors = (1ll << 31) - 1;
  /// Transposed tiles pay where both sides have runs of at least this many elements.
  long long transposed_min = 8;
};

class PieceList {
 public:
  /// Base i lies at a multiple of alignments[i] bytes in every launch of this list.
  explicit PieceList(std::vector<int> alignments, const PieceLimits& limits = {})
      : alignments_(std::move(alignments)), limits_(limits) {}

  void add(const BlockMove& move);

  /// Lays out the units and their groups. A lane takes `lane_vectors` vectors of a unit. 0 chooses the most that the
  /// widths can use and that leave `groups_min` groups, so that each multiprocessor has one.
  void lay_out(unsigned groups_min, unsigned lane_vectors = 0);

  const std::vector<int>& alignments() const { return alignments_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::vector<Piece>& pieces() { return pieces_; }
  const std::vector<unsigned>& first_units() const { return first_units_; }
  const std::vector<GroupStart>& starts() const { return starts_; }
  unsigned groups() const { return first_units_.back() / group_units; }
  unsigned lane_vectors() const { return lane_vectors_; }
  bool has_maps() const {
    return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& p) { return p.map != ElementMap::copy; });
  }
  bool has_transposed() const {
    return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& p) { return p.kind != PieceKind::elements; });
  }
  PieceListView view() const {
    return {pieces_.data(),
            first_units_.data(),
            starts_.empty() ? nullptr : starts_.data(),
            static_cast<unsigned>(pieces_.size()),
            groups(),
            lane_vectors_};
  }

 private:
  struct Loop {
    long long extent = 1, source = 0, target = 0;
  };
  struct Cut {
    Loop columns, rows, outers;
    long long source_offset, target_offset;
  };

  static int alignment_of(long long number) { return number % 16 == 0 ? 16 : static_cast<int>(number & -number); }
  static long long span(const Cut& cut, long long Loop::*stride, int width);
  void emit(const BlockMove& move, int width, PieceKind kind, const Cut& cut);
  bool fits_words(const Piece& piece) const;
  unsigned long long units_of(const Piece& piece) const;
  void count_units();

  std::vector<int> alignments_;
  PieceLimits limits_;
  std::vector<Piece> pieces_;
  std::vector<unsigned> first_units_ = {0};
  std::vector<GroupStart> starts_;
  unsigned lane_vectors_ = lean_vectors;
};

inline void PieceList::add(const BlockMove& given) {
  BlockMove move = given;
  const bool keeps_elements = move.map != ElementMap::copy;
  CopyBlock block;
  const auto append = [&block](long long extent, long long source, long long target) {
    if (block.dims == block_dims_max) throw std::invalid_argument("a move has too many dimensions");
    block.extents[block.dims] = extent;
    block.source_strides[block.dims] = source;
    block.target_strides[block.dims++] = target;
  };
  for (int d = 0; d < move.block.dims; ++d) {
    const long long extent = move.block.extents[d];
    long long source = move.block.source_strides[d], target = move.block.target_strides[d];
    if (extent <= 0) return;
    if (extent == 1) continue;
    if (target <= 0) {  // reverses the loop; of the elements with one target, the last one stays
      move.source_offset += (extent - 1) * source;
      move.target_offset += (extent - 1) * target;
      source = -source;
      target = -target;
    }
    if (target == 0 && keeps_elements) throw std::invalid_argument("a move may combine several elements into one");
    if (target != 0) append(extent, source, target);
  }
  if (!tranship::detail::target_is_nested(tranship::detail::sorted_by_target(block), move.width))
    throw std::invalid_argument("a move may write an element twice");

  // The loop finds the widest element that lies at multiples of its width everywhere.
  int width = move.width;
  if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16) {
    append(width, 1, 1);
    width = 1;
  }
  int common = std::min({alignments_.at(move.source_base), alignments_.at(move.target_base),
                         alignment_of(move.source_offset), alignment_of(move.target_offset)});
  for (int d = 0; d < block.dims; ++d)
    common = std::min({common, alignment_of(block.source_strides[d]), alignment_of(block.target_strides[d])});
  if (common < width && keeps_elements) throw std::invalid_argument("a move is not aligned to its elements");
  if (common < width) {
    append(width / common, common, common);
    width = common;
  }
  canonicalise(block, width);
  std::vector<Loop> loops;
  for (int d = 0; d < block.dims; ++d)
    loops.push_back({block.extents[d], block.source_strides[d], block.target_strides[d]});

  // Rows that lie side by side in both become rows of wider vectors, or one vector each.
  constexpr std::size_t none = ~std::size_t(0);
  const auto find = [&](const auto& is_it) {
    for (std::size_t i = loops.size(); i-- > 0;)
      if (is_it(loops[i])) return i;
    return none;
  };
  const auto is_contiguous = [&](const Loop& loop) { return loop.source == width && loop.target == width; };
  if (const std::size_t row = find(is_contiguous); row != none) {
    int wide =
        std::min({alignment_of(loops[row].extent * width), alignments_[move.source_base], alignments_[move.target_base],
                  alignment_of(move.source_offset), alignment_of(move.target_offset)});
    for (std::size_t i = 0; i < loops.size(); ++i)
      if (i != row) wide = std::min({wide, alignment_of(loops[i].source), alignment_of(loops[i].target)});
    if (keeps_elements && wide < 16) wide = width;
    loops[row] = {loops[row].extent * width / wide, wide, wide};
    width = wide;
    if (loops[row].extent == 1) loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(row));
  }

  // This chooses columns and rows so that neighbouring lanes touch neighbouring bytes, on both sides if possible.
  PieceKind kind = PieceKind::elements;
  std::size_t columns = find(is_contiguous), rows = none;
  const std::size_t in_source = find([&](const Loop& loop) { return std::abs(loop.source) == width; });
  const std::size_t in_target = find([&](const Loop& loop) { return loop.target == width; });
  const auto smallest = [&](const auto& stride_of) {
    std::size_t best = none;
    for (std::size_t i = loops.size(); i-- > 0;)
      if (i != columns && stride_of(loops[i]) != 0 && (best == none || stride_of(loops[i]) < stride_of(loops[best])))
        best = i;
    return best;
  };
  const auto source_stride = [](const Loop& loop) { return std::abs(loop.source); };
  const auto target_stride = [](const Loop& loop) { return loop.target; };
  if (columns != none || in_source == in_target) {
    if (columns == none) columns = in_source;  // the source runs backwards, or has no run
    if (columns == none && !loops.empty()) columns = loops.size() - 1;
    rows = smallest(target_stride);
  } else if (in_source == none) {
    columns = in_target;
    rows = smallest(source_stride);
  } else if (in_target == none) {
    columns = in_source;
    rows = smallest(target_stride);
  } else {
    columns = in_source;
    rows = in_target;
    if (!keeps_elements && std::min(loops[columns].extent, loops[rows].extent) >= limits_.transposed_min)
      kind = PieceKind::transposed;
    else if (loops[rows].extent < loops[columns].extent)
      std::swap(columns, rows);
  }
  const auto longest_left = [&](std::size_t taken) {
    std::size_t best = none;
    for (std::size_t i = 0; i < loops.size(); ++i)
      if (i != columns && i != taken && (best == none || loops[i].extent > loops[best].extent)) best = i;
    return best;
  };
  if (rows == none) rows = longest_left(none);
  const std::size_t outers = longest_left(rows);

  Cut cut{{}, {}, {}, move.source_offset, move.target_offset};
  if (columns != none) cut.columns = loops[columns];
  if (rows != none) cut.rows = loops[rows];
  if (outers != none) cut.outers = loops[outers];
  std::vector<Loop> rest;
  for (std::size_t i = 0; i < loops.size(); ++i)
    if (i != columns && i != rows && i != outers) rest.push_back(loops[i]);
  std::vector<long long> at(rest.size());
  for (;;) {
    emit(move, width, kind, cut);
    std::size_t d = 0;
    for (; d < rest.size(); ++d) {
      cut.source_offset += rest[d].source;
      cut.target_offset += rest[d].target;
      if (++at[d] < rest[d].extent) break;
      cut.source_offset -= rest[d].extent * rest[d].source;
      cut.target_offset -= rest[d].extent * rest[d].target;
      at[d] = 0;
    }
    if (d == rest.size()) return;
  }
}

inline long long PieceList::span(const Cut& cut, long long Loop::*stride, int width) {
  long long bytes = width;
  for (const Loop* loop : {&cut.columns, &cut.rows, &cut.outers}) bytes += (loop->extent - 1) * std::abs(loop->*stride);
  return bytes;
}

inline void PieceList::emit(const BlockMove& move, int width, PieceKind kind, const Cut& cut) {
  Loop Cut::*const all[] = {&Cut::columns, &Cut::rows, &Cut::outers};
  Loop Cut::*longest = nullptr;
  // The comparisons by division keep products of three extents within 63 bits.
  const long long plane_max = limits_.vectors / cut.outers.extent;
  if (span(cut, &Loop::source, width) > limits_.span_bytes || span(cut, &Loop::target, width) > limits_.span_bytes) {
    const auto reach = [&](Loop Cut::*loop) {
      return ((cut.*loop).extent - 1) * std::max(std::abs((cut.*loop).source), (cut.*loop).target);
    };
    longest = *std::max_element(std::begin(all), std::end(all), [&](auto a, auto b) { return reach(a) < reach(b); });
  } else if (cut.rows.extent > plane_max || cut.columns.extent > plane_max / cut.rows.extent) {
    longest = *std::max_element(std::begin(all), std::end(all),
                                [&](auto a, auto b) { return (cut.*a).extent < (cut.*b).extent; });
  }
  if (longest && (cut.*longest).extent > 1) {
    Cut lower = cut, upper = cut;
    const Loop& loop = cut.*longest;
    const long long half = loop.extent / 2;
    (lower.*longest).extent = half;
    (upper.*longest).extent = loop.extent - half;
    upper.source_offset += half * loop.source;
    upper.target_offset += half * loop.target;
    emit(move, width, kind, lower);
    emit(move, width, kind, upper);
    return;
  }

  Piece piece{};
  piece.source_offset = cut.source_offset;
  piece.target_offset = cut.target_offset;
  piece.source_base = move.source_base;
  piece.target_base = move.target_base;
  // A loop of one element gets no step, because a stride that was cut away need not fit.
  const auto step = [](const Loop& loop, long long stride) { return loop.extent > 1 ? static_cast<int>(stride) : 0; };
  piece.source_column = step(cut.columns, cut.columns.source);
  piece.target_column = step(cut.columns, cut.columns.target);
  piece.source_row = step(cut.rows, cut.rows.source);
  piece.target_row = step(cut.rows, cut.rows.target);
  piece.source_outer = step(cut.outers, cut.outers.source);
  piece.target_outer = step(cut.outers, cut.outers.target);
  piece.columns = static_cast<unsigned>(cut.columns.extent);
  piece.rows = static_cast<unsigned>(cut.rows.extent);
  piece.outers = static_cast<unsigned>(cut.outers.extent);
  piece.width_log2 = static_cast<unsigned char>(__builtin_ctz(static_cast<unsigned>(width)));
  piece.kind = kind;
  piece.map = move.map;
  if (kind == PieceKind::transposed && fits_words(piece)) piece.kind = PieceKind::transposed_words;
  const unsigned side = tile_side(piece.kind, static_cast<unsigned>(width));
  const bool is_tiled = kind == PieceKind::transposed;
  const Divisor by_columns = divisor_of(is_tiled ? (piece.columns + side - 1) / side : piece.columns);
  const Divisor by_rows = divisor_of(is_tiled ? (piece.rows + side - 1) / side : piece.rows);
  piece.column_multiplier = by_columns.multiplier;
  piece.column_shift = by_columns.shift;
  piece.row_multiplier = by_rows.multiplier;
  piece.row_shift = by_rows.shift;
  pieces_.push_back(piece);
}

/// Returns true when narrow elements can be loaded and stored by whole words of 4 bytes.
inline bool PieceList::fits_words(const Piece& piece) const {
  const long long width = 1 << piece.width_log2, each = 4 / width;
  if (each < 2 || piece.source_column != width || piece.target_row != width) return false;
  if (piece.columns % each != 0 || piece.rows % each != 0) return false;
  const long long all[] = {piece.source_offset,
                           piece.source_row,
                           piece.source_outer,
                           piece.target_offset,
                           piece.target_column,
                           piece.target_outer,
                           alignments_[piece.source_base],
                           alignments_[piece.target_base]};
  return std::all_of(std::begin(all), std::end(all), [](long long number) { return number % 4 == 0; });
}

inline unsigned long long PieceList::units_of(const Piece& piece) const {
  const auto up = [](unsigned long long n, unsigned long long of) { return (n + of - 1) / of; };
  const unsigned width = 1u << piece.width_log2;
  if (piece.kind == PieceKind::elements)
    return up(1ull * piece.columns * piece.rows * piece.outers,
              1ull * lane_vectors_of(width, lane_vectors_) * warp_lanes);
  const unsigned side = tile_side(piece.kind, width);
  return up(piece.columns, side) * up(piece.rows, side) * piece.outers * group_units;
}

inline void PieceList::count_units() {
  first_units_.assign(1, 0);
  unsigned long long units = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    units += units_of(pieces_[i]);
    // Tiles begin with a group, and the last group is whole, so the piece before has empty units.
    if (i + 1 == pieces_.size() || pieces_[i + 1].kind != PieceKind::elements)
      units = (units + group_units - 1) / group_units * group_units;
    if (units >> 32) throw std::invalid_argument("a list has too many units");
    first_units_.push_back(static_cast<unsigned>(units));
  }
}

inline void PieceList::lay_out(unsigned groups_min, unsigned lane_vectors) {
  if (lane_vectors > lane_vectors_max) throw std::invalid_argument("a lane has too many vectors of a unit");
  const bool has_narrow = std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) {
    return piece.kind == PieceKind::elements && piece.width_log2 < 4;
  });
  lane_vectors_ = lane_vectors ? lane_vectors : has_narrow ? lane_vectors_max : lean_vectors;
  count_units();
  while (lane_vectors == 0 && groups() < groups_min && lane_vectors_ > 1) {
    lane_vectors_ /= 2;
    count_units();
  }
  starts_.clear();
  if (pieces_.size() < 2) return;  // no search is needed
  unsigned at = 0;
  for (unsigned first = 0; first < first_units_.back(); first += group_units) {
    while (first_units_[at + 1] <= first) ++at;
    GroupStart start{at, first_units_[at], 0};
    while (first_units_[at + 1] < first + group_units) start.firsts |= 1u << (first_units_[++at] - first);
    starts_.push_back(start);
  }
}

}  // namespace tranship::packing
