// Private: ProgramStopwatch times launches of programs while the cores of a machine are at their usual distance from
// each other.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>
#include <tranship/run/program_executor.hpp>

namespace tranship {

/// Times programs on the ranks of a world. A time is the median of several launches, which is the usual time of a
/// program. It is taken in several passes, of which the least counts, so that a busy moment does not spoil all launches
/// of one program. Where a virtual machine moves its cores, signals between them become several times slower or faster
/// from one second to the next, and bytes with them. So signals are timed before and after each program, and only times
/// beside usual signals count; other times count only for a program without any such time. All ranks return the same.
class ProgramStopwatch {
 public:
  /// Collective. `signals` is the program that times signals. Each program gets `launches` launches of the largest
  /// input, and more of smaller ones, until it has `passes` times that count, or four times as many in all.
  ProgramStopwatch(World& world, int launches, int passes, std::shared_ptr<const Program> signals);

  /// Collective: calls measure() until every program in it has enough times.
  void take_passes(FunctionRef<void()> measure);

  /// Collective. Inside take_passes() it times the program, at most once per pass; it returns the best time so far.
  /// Programs are told apart by their names.
  double launch_ns(const Program& program, Index input_bytes);

  /// Returns true when some time was taken beside usual signals.
  bool is_usual(const Program& program, Index input_bytes) const;
  /// Programs that were timed, each size counted, and those among them without a usual time.
  Index timed() const noexcept { return static_cast<Index>(samples_.size()); }
  Index unusual() const;

 private:
  struct Sample {
    double before_ns = 0, after_ns = 0;  ///< time of the signals
    double ns = 0;
  };
  struct Samples {
    int pass = -1;  ///< the last pass in which it was asked for
    std::vector<Sample> all;
  };

  bool is_usual(const Sample& sample) const noexcept;
  std::ptrdiff_t usual(const Samples& samples) const;  ///< how many samples are usual
  bool has_enough(const Samples& samples) const;
  double time_signals_ns();
  double measured_ns(const Program& program, Index input_bytes);

  World& world_;
  int launches_, passes_;
  std::shared_ptr<const Program> signals_;
  ProgramExecutor signals_executor_;
  std::vector<double> signals_ns_;  ///< of all times, sorted
  double usual_signals_ns_ = 0;     ///< their median
  int pass_ = -1;
  std::map<std::pair<std::string, Index>, Samples> samples_;
  volatile unsigned char seen_ = 0;
};

}  // namespace tranship
