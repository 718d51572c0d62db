// Private: What this machine takes for the steps of programs, measured with small programs through ProgramExecutor: the
// constants are those of the executor as it is, on inputs that each rank has just written.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tranship/fabric/world.hpp>
#include <tranship/program/machine_model.hpp>

namespace tranship {

struct MachineTrial {
  Index input_bytes_max = 16 << 20;  ///< of each rank; larger messages are as fast as these
  int launches = 4;                  ///< of each program with the largest input; more of smaller ones
  int passes = 4;                    ///< of each, while cores are as far from each other as they usually are
};

/// A ready algorithm, as it is predicted and as it was.
struct PredictionCheck {
  std::string_view algorithm;
  Index input_bytes = 0;
  double predicted_ns = 0, measured_ns = 0;
  /// Whether signals were as fast while it was measured as they usually were.
  bool is_comparable = false;

  double ratio() const noexcept { return predicted_ns / measured_ns; }
};
constexpr Index checked_bytes_min = 64 << 10;

enum class MachineChecks : std::uint8_t { leave_out, make };

struct MeasuredMachine {
  MachineModel model;
  std::vector<PredictionCheck> checks;
  Index timed = 0;    ///< programs, each size of them counted
  Index unusual = 0;  ///< of these, timed only while cores were nearer or farther than usual
};

/// About so much memory measure_machine() takes, of all ranks together.
Index measured_bytes(Rank ranks, const MachineTrial& trial = {}, MachineChecks checks = MachineChecks::leave_out);

/// Collective over at least 2 ranks, no more than there are cores. All ranks pass and return the same. With checks, all
/// ready algorithms are measured, too, with `checked_bytes_min` to `input_bytes_max`, and compared with their
/// predictions.
MeasuredMachine measure_machine(World& world, const MachineTrial& trial = {},
                                MachineChecks checks = MachineChecks::leave_out);

/// Collective over more ranks than there are cores: how long a core needs until it goes on with another rank, where the
/// rest of the model is known.
double measure_core_switch_ns(World& world, const MachineModel& machine, const MachineTrial& trial = {});

}  // namespace tranship
