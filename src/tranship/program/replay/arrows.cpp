#include "tranship/program/replay/arrows.hpp"

#include <algorithm>

namespace tranship::replays {

void ReplayArrows::draw(std::int32_t from, std::int32_t to, StepArrow::Kind kind) {
  if (!are_found() || from < 0 || from == to) return;
  const StepArrow arrow{.from = from, .to = to, .kind = kind};
  if (!out_.arrows.empty() && out_.arrows.back() == arrow) return;
  if (Index(out_.arrows.size()) < options_.arrows_max)
    out_.arrows.push_back(arrow);
  else
    ++out_.arrows_dropped;
}

void ReplayArrows::draw_sources(Rank rank, const Step& step, std::int32_t id, Part part) {
  if (!are_found()) return;
  const StepShape& shape = shape_of(step.kind);
  for (std::size_t i = 0; i < std::size_t(step.sources); ++i) {
    const OperandShape what = shape_of_source(shape, i);
    const bool is_plain = what.format == OperandFormat::plain;
    data_.for_each_range(rank, step.operands[i], what, part, [&](const ReplayData::Range& range) {
      data_.written(range).read(range.begin, range.end, [&](Index, const Written::Cell& cell) {
        if (is_plain && out_.steps[std::size_t(cell.step)].rank == rank) return;
        draw(cell.step, id, is_plain ? StepArrow::Kind::data : StepArrow::Kind::packets);
      });
    });
  }
}

void ReplayArrows::sort() {
  std::sort(out_.arrows.begin(), out_.arrows.end());
  out_.arrows.erase(std::unique(out_.arrows.begin(), out_.arrows.end()), out_.arrows.end());
}

}  // namespace tranship::replays
