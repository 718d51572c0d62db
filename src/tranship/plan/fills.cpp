#include "tranship/plan/fills.hpp"

namespace tranship {
namespace {

std::vector<Run> local_runs(const std::vector<AxisPiece>& pieces, unsigned kinds) {
  std::vector<Run> out;
  for (const AxisPiece& piece : pieces)
    if (kinds >> int(piece.kind) & 1) out.push_back(piece.local_run());
  return out;
}

constexpr unsigned bit(AxisPieceKind kind) {
  return 1u << int(kind);
}

}  // namespace

void append_fills(int slot, const std::vector<std::vector<AxisPiece>>& pieces, std::vector<LocalFill>& fills) {
  const int dims = int(pieces.size());
  const unsigned given = bit(AxisPieceKind::given), zero = bit(AxisPieceKind::zero),
                 replicated = bit(AxisPieceKind::replicated);
  // Dimension k is the first one of its kind; the dimensions before it exclude that kind, so that no cell comes twice.
  auto append = [&](LocalFillKind kind, unsigned before, unsigned own, unsigned after) {
    for (int k = 0; k < dims; ++k) {
      LocalFill fill{.kind = kind, .slot = slot};
      bool empty = false;
      for (int d = 0; d < dims; ++d) {
        fill.axes.push_back(local_runs(pieces[d], d < k ? before : d == k ? own : after));
        empty |= fill.axes.back().empty();
      }
      if (!empty) fills.push_back(std::move(fill));
    }
  };
  append(LocalFillKind::zero, given | replicated, zero, given | replicated | zero);
  append(LocalFillKind::replicate, given, replicated, given | replicated);
}

}  // namespace tranship
