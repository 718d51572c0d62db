// Private: ReplayData, the memories of all ranks of a replayed program: which step has written which bytes, and which
// bytes lie in the cache of another rank.
#pragma once

#include <cstdint>
#include <vector>

#include <tranship/program/collective.hpp>
#include <tranship/program/replay.hpp>
#include <tranship/program/replay/written.hpp>
#include <tranship/program/step_shape.hpp>

namespace tranship::replays {

/// A range of bytes of each operand of a step, from the operand's beginning.
struct Part {
  Index begin = 0, end = 0;

  double bytes() const { return static_cast<double>(end - begin); }
};

class ReplayData {
 public:
  /// All arguments must outlive it. `chunk_bytes` is a multiple of cut_unit_bytes.
  ReplayData(const Program& program, const MachineModel& machine, const std::vector<StepPlace>& steps,
             Index chunk_bytes);

  /// The part of its operands that a step works on. `loop` is the loop around it, or null.
  Part part_of(const Step& step, const Pipeline* loop, Index iteration) const;
  /// Number of iterations of a loop, at most `iterations_max`.
  Index iterations_of(const Pipeline& loop, Index iterations_max) const;

  /// A stretch of bytes of a memory.
  struct Range {
    Rank rank;
    std::size_t memory;
    Index begin, end;
  };
  Range range_of(Rank rank, const Operand& operand, OperandFormat format, Part part) const;
  /// Calls f(range) for each place of an operand of rank `own`.
  template <class F>
  void for_each_range(Rank own, const Operand& operand, OperandShape shape, Part part, F&& f) const {
    const RankProgram& ranks = program_.ranks[static_cast<std::size_t>(own)];
    switch (shape.where) {
      case Where::here:
        return f(range_of(own, operand, shape.format, part));
      case Where::peer:
        return f(range_of(ranks.remote_buffers[std::size_t(operand.via)].rank, operand, shape.format, part));
      case Where::group:
        for (const Rank rank : ranks.switches[std::size_t(operand.via)].ranks)
          f(range_of(rank, operand, shape.format, part));
    }
  }

  void write(const Range& range, const Arrival& arrival, std::int32_t step) {
    written_[range.memory].write(range.begin, range.end, arrival, step);
  }
  const Written& written(const Range& range) const { return written_[range.memory]; }

  /// Bytes of plain data here that another rank of this host wrote last. They are in that rank's cache, and a CPU reads
  /// them as slowly as if they were there.
  double bytes_of_peers(Rank own, const Operand& operand, OperandShape what, Part part) const;
  /// Bytes of plain data here that another rank of this host has read since this rank wrote them, maybe in the previous
  /// launch. They are in that rank's cache, too, and a CPU must take them back before it writes.
  double bytes_to_take_back(Rank own, const Operand& operand, Part part) const;

 private:
  void find_what_peers_read();
  bool in_turn() const { return machine_.blocks == MachineModel::Blocks::in_turn; }
  bool share_host(Rank one, Rank other) const {
    return one / machine_.ranks_per_host == other / machine_.ranks_per_host;
  }

  const Program& program_;
  const MachineModel& machine_;
  const std::vector<StepPlace>& steps_;
  const Index chunk_bytes_;
  std::vector<Written> written_;        // by rank, memory, and plain data or packets
  std::vector<Written> read_by_peers_;  // by rank and memory: bytes that other ranks of the host read in a launch
};

}  // namespace tranship::replays
