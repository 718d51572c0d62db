#include "tranship/plan/cut_pieces.hpp"

#include <algorithm>

namespace tranship {
namespace {

/// Returns `count` slices of a family from number `first` on.
SliceFamily part_of(const SliceFamily& family, Index first, Index count) {
  SliceFamily out = family;
  out.number += first;
  out.start += first * family.period;
  out.local += first * family.pitch;
  out.count = count;
  return out;
}

/// Appends the part of a piece that cut_pieces() keeps.
void append_cut(const AxisPiece& piece, Index extent, Interval cells, std::vector<AxisPiece>& out) {
  const AxisWant& want = piece.want;
  const SliceFamily& f = want.family;
  if (piece.kind != AxisPieceKind::given) {
    const Index edge = piece.kind == AxisPieceKind::replicated ? piece.from_local - f.local - f.left + f.start
                       : f.start + want.lower < 0              ? 0
                                                               : extent - 1;
    if (cells.contains(edge)) out.push_back(piece);
    return;
  }
  const auto append = [&](Index first, Index count) {
    AxisPiece cut = piece;
    cut.want.family = part_of(f, first, count);
    const Index start = cut.want.family.start + want.offset;
    cut.want.lower = std::max(want.lower, cells.lower - start);
    cut.want.upper = std::min(want.upper, cells.upper - start);
    if (f.period > 0 && count > 1) cut.want.lower = want.lower, cut.want.upper = want.upper;
    if (cut.want.lower < cut.want.upper) out.push_back(std::move(cut));
  };
  if (f.count == 1 || f.period == 0) return append(0, f.count);
  // Slices [begin, end) touch the interval; [inner, inner_end) lie inside it.
  const Index lower = f.start + want.lower + want.offset, upper = f.start + want.upper + want.offset;
  const auto clamp = [&](Index slice) { return std::clamp<Index>(slice, 0, f.count); };
  const Index begin = clamp(floor_divide(cells.lower - upper, f.period) + 1);
  const Index end = clamp(ceil_divide(cells.upper - lower, f.period));
  const Index inner = std::max(begin, clamp(ceil_divide(cells.lower - lower, f.period)));
  const Index inner_end = std::min(end, clamp(floor_divide(cells.upper - upper, f.period) + 1));
  if (inner >= inner_end) {
    for (Index slice = begin; slice < end; ++slice) append(slice, 1);
    return;
  }
  for (Index slice = begin; slice < inner; ++slice) append(slice, 1);
  append(inner, inner_end - inner);
  for (Index slice = inner_end; slice < end; ++slice) append(slice, 1);
}

}  // namespace

std::vector<AxisPiece> cut_pieces(const std::vector<AxisPiece>& pieces, Index extent, Interval cells) {
  std::vector<AxisPiece> out;
  for (const AxisPiece& piece : pieces) append_cut(piece, extent, cells, out);
  return out;
}

}  // namespace tranship
