#include "tranship/program/replay/data.hpp"

#include <algorithm>

namespace tranship::replays {
namespace {

constexpr Index bytes_max = Index(1) << 61;  // bytes of a loop; more would make too many events anyway

Index unit_of(const Pipeline& loop) {
  return (std::min(loop.unit_bytes, bytes_max) + cut_unit_bytes - 1) / cut_unit_bytes * cut_unit_bytes;
}

}  // namespace

ReplayData::ReplayData(const Program& program, const MachineModel& machine, const std::vector<StepPlace>& steps,
                       Index chunk_bytes)
    : program_(program),
      machine_(machine),
      steps_(steps),
      chunk_bytes_(chunk_bytes),
      written_(program.ranks.size() * buffer_kinds * 2) {
  find_what_peers_read();
}

Index ReplayData::iterations_of(const Pipeline& loop, Index iterations_max) const {
  const Index bytes = std::min(loop.chunks, bytes_max / chunk_bytes_) * chunk_bytes_;
  return std::min(std::max<Index>(1, (bytes + unit_of(loop) - 1) / unit_of(loop)), iterations_max);
}

Part ReplayData::part_of(const Step& step, const Pipeline* loop, Index iteration) const {
  Index begin = 0, end = (step.operands.empty() ? 0 : step.operands[0].count) * chunk_bytes_;
  if (loop) {
    const Index unit = unit_of(*loop);
    begin = iteration < end / unit + 1 ? std::min(end, iteration * unit) : end;
    end = end - begin < unit ? end : begin + unit;
  }
  if (step.shares > 0) {
    const UnitRange own = share_of((end - begin) / cut_unit_bytes, step.share, step.shares);
    begin += own.first * cut_unit_bytes;
    end = begin + own.count * cut_unit_bytes;
  }
  return {begin, end};
}

ReplayData::Range ReplayData::range_of(Rank rank, const Operand& operand, OperandFormat format, Part part) const {
  const BufferPlace at = place_of(program_, rank, operand.buffer);
  const Index first = (at.first_chunk + operand.first) * chunk_bytes_;
  const std::size_t packets = format == OperandFormat::plain ? 0 : 1;
  return {rank, (std::size_t(rank) * buffer_kinds + std::size_t(at.memory)) * 2 + packets, first + part.begin,
          first + part.end};
}

double ReplayData::bytes_of_peers(Rank own, const Operand& operand, OperandShape what, Part part) const {
  if (!in_turn() || what.where != Where::here || what.format != OperandFormat::plain) return 0;
  const Range range = range_of(own, operand, what.format, part);
  Index out = 0;
  written(range).read(range.begin, range.end, [&](Index begin, const Written::Cell& cell) {
    const Rank writer = steps_[std::size_t(cell.step)].rank;
    if (writer != own && share_host(writer, own)) out += std::min(cell.end, range.end) - std::max(begin, range.begin);
  });
  return static_cast<double>(out);
}

void ReplayData::find_what_peers_read() {
  if (!in_turn()) return;
  read_by_peers_.resize(written_.size() / 2);
  for (const StepPlace& place : steps_) {
    const Step& step = *place.what;
    const StepShape& shape = shape_of(step.kind);
    for (std::size_t i = 0; shape.moves() && i < std::size_t(step.sources); ++i) {
      const OperandShape what = shape_of_source(shape, i);
      if (what.where == Where::here || what.format != OperandFormat::plain) continue;
      const Part whole{0, step.operands[i].count * chunk_bytes_};
      for_each_range(place.rank, step.operands[i], what, whole, [&](const Range& range) {
        if (range.rank != place.rank && share_host(range.rank, place.rank))
          read_by_peers_[range.memory / 2].write(range.begin, range.end, {}, -1);
      });
    }
  }
}

double ReplayData::bytes_to_take_back(Rank own, const Operand& operand, Part part) const {
  if (!in_turn()) return 0;
  const Range range = range_of(own, operand, OperandFormat::plain, part);
  Index out = 0;
  const auto within = [&](Index begin, const Written::Cell& cell) {
    return std::max<Index>(0, std::min(cell.end, range.end) - std::max(begin, range.begin));
  };
  read_by_peers_[range.memory / 2].read(range.begin, range.end,
                                        [&](Index begin, const Written::Cell& cell) { out += within(begin, cell); });
  written(range).read(range.begin, range.end, [&](Index begin, const Written::Cell& cell) {
    if (steps_[std::size_t(cell.step)].rank == own) out -= within(begin, cell);
  });
  return static_cast<double>(std::max<Index>(0, out));
}

}  // namespace tranship::replays
