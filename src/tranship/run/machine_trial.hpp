// Private: measures the costs of program steps on this machine with small programs through ProgramExecutor. The
// constants describe the executor as it is, on inputs that each rank has just written.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tranship/fabric/world.hpp>
#include <tranship/program/machine_model.hpp>

namespace tranship {

struct MachineTrial {
  Index input_bytes_max = 16 << 20;  ///< of each rank; the rates of larger messages are taken as equal
  int launches = 4;                  ///< of each program with the largest input; more for smaller ones
  int passes = 4;                    ///< of each program, while cores are at their usual distance from each other
};

/// A ready algorithm: predicted and measured times.
struct PredictionCheck {
  std::string_view algorithm;
  Index input_bytes = 0;
  double predicted_ns = 0, measured_ns = 0;
  /// True: signals were as fast during the measurement as usual.
  bool is_comparable = false;

  double ratio() const noexcept { return predicted_ns / measured_ns; }
};
constexpr Index checked_bytes_min = 64 << 10;

enum class MachineChecks : std::uint8_t { leave_out, make };

struct MeasuredMachine {
  MachineModel model;
  std::vector<PredictionCheck> checks;
  Index timed = 0;    ///< programs, each size counted
  Index unusual = 0;  ///< of these, timed only while cores were nearer or farther than usual
};

/// Approximate memory that measure_machine() takes, of all ranks together.
Index measured_bytes(Rank ranks, const MachineTrial& trial = {}, MachineChecks checks = MachineChecks::leave_out);

/// Collective over at least 2 ranks, and no more than there are cores. All ranks pass and return equal values. With
/// checks, all ready algorithms are measured, too, from `checked_bytes_min` to `input_bytes_max`, and compared with
/// their predictions. Throws `invalid_use` in a world of one rank.
MeasuredMachine measure_machine(World& world, const MachineTrial& trial = {},
                                MachineChecks checks = MachineChecks::leave_out);

/// Collective over more ranks than there are cores: measures how long a core takes to change to another rank, given the
/// rest of the model.
double measure_core_switch_ns(World& world, const MachineModel& machine, const MachineTrial& trial = {});

}  // namespace tranship
