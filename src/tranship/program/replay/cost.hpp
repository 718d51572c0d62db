// Private: CostModel, how long a step takes by itself on a machine, and which bytes it loads onto the links between
// ranks. It is a pure function of the step and of where its data lies; links.hpp knows when links are free, and the
// scheduler decides when a step begins.
#pragma once

#include <vector>

#include <tranship/program/machine_model.hpp>
#include <tranship/program/replay/data.hpp>

namespace tranship::replays {

/// Bytes that links carry during a step or after it.
struct LinkLoad {
  static constexpr Rank at_switch = -1;

  Rank from = 0, to = 0;  ///< a rank, or the switch, which accesses all ranks at once
  double bytes = 0;
  bool has_proxy = false;   ///< a proxy carries it in order, and the step does not wait
  double bandwidth_ns = 0;  ///< time that the proxy takes
};

struct StepCost {
  double latency_ns = 0;
  double bandwidth_ns = 0;
  std::vector<LinkLoad> loads;  ///< in the order in which they take the links
};

class CostModel {
 public:
  /// All arguments must outlive it.
  CostModel(const Program& program, const MachineModel& machine, const ReplayData& data, Index chunk_bytes,
            Index input_bytes);

  /// Writes the cost of a step that moves data to `out`.
  void cost_of_move(Rank own, const Step& step, Part part, StepCost& out) const;
  /// Times to copy the chunks that a launch copies before its first step, and after its last one.
  double copy_in_ns(Rank rank) const;
  double copy_out_ns(Rank rank) const;
  /// Throws `unsupported` for a link that the machine lacks.
  const LinkModel& link(ChannelKind kind, Rank from, Rank to) const;

 private:
  const RankProgram& of(Rank rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }
  Index host_of(Rank rank) const { return rank / machine_.ranks_per_host; }
  bool in_turn() const { return machine_.blocks == MachineModel::Blocks::in_turn; }
  double touched(Rank rank) const { return touched_bytes_[std::size_t(host_of(rank))]; }
  double copied_ns(Rank rank, Index chunks) const;
  Rank rank_of(Rank own, const Operand& operand, Where where) const;
  void load(Rank from, Rank to, double bytes, StepCost& cost) const;

  void first_source(Rank own, const Step& step, const Operand& operand, OperandShape what, Part part,
                    StepCost& cost) const;
  void add_source(Rank own, const Operand& operand, OperandShape what, Part part, StepCost& cost) const;
  void add_target(Rank own, const Step& step, const Operand& operand, OperandShape what, OperandFormat source,
                  Part part, StepCost& cost) const;
  void put(Rank own, Rank peer, const Step& step, const Operand& operand, OperandShape what, OperandFormat source,
           Part part, StepCost& cost) const;

  const Program& program_;
  const MachineModel& machine_;
  const ReplayData& data_;
  const double chunk_bytes_;
  const std::vector<LaunchCopies> launch_copies_;
  const std::vector<double> touched_bytes_;  // by host
};

}  // namespace tranship::replays
