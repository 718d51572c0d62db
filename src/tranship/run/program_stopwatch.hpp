// Private: what launches of programs take while the cores of a machine are as far from each other as they usually are.
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

/// Times of programs on the ranks of a world: medians of launches, since that is what programs usually take. All are
/// measured in several passes of which the least counts: what is busy at one time does not spoil all launches of one
/// program. Where a virtual machine moves its cores, signals between them become several times as slow or as fast, from
/// one second to the next, and bytes with them. So signals are timed before and after each program, and only times
/// beside usual ones count: those of one machine, as it is most of the time. Others count only for a program that has
/// no usual one. All ranks return the same.
class ProgramStopwatch {
 public:
  /// Collective. `signals` is the program that times signals. Of each program `launches` of the largest input are
  /// timed, more of smaller ones, until it has `passes` times that count or four times as many of any.
  ProgramStopwatch(World& world, int launches, int passes, std::shared_ptr<const Program> signals);

  /// Collective: calls measure() until all that it times has enough.
  void take_passes(FunctionRef<void()> measure);

  /// Collective: within take_passes(), of this pass or an earlier one; afterwards the best. Programs are told apart by
  /// their names.
  double launch_ns(const Program& program, Index input_bytes);

  /// Whether signals were as usual when that was timed.
  bool is_usual(const Program& program, Index input_bytes) const;
  /// Programs that were timed, each size counted, and those of them that have no usual time.
  Index timed() const noexcept { return static_cast<Index>(samples_.size()); }
  Index unusual() const;

 private:
  struct Sample {
    double before_ns = 0, after_ns = 0;  ///< what signals took
    double ns = 0;
  };
  struct Samples {
    int pass = -1;  ///< the last one in which it was asked for
    std::vector<Sample> all;
  };

  bool is_usual(const Sample& sample) const noexcept;
  std::ptrdiff_t usual(const Samples& samples) const;  ///< how many are
  bool has_enough(const Samples& samples) const;
  double time_signals_ns();
  double measured_ns(const Program& program, Index input_bytes);

  World& world_;
  int launches_, passes_;
  std::shared_ptr<const Program> signals_;
  ProgramExecutor signals_executor_;
  std::vector<double> signals_ns_;  ///< of all times
  double usual_signals_ns_ = 0;     ///< their median
  int pass_ = -1;
  std::map<std::pair<std::string, Index>, Samples> samples_;
  volatile unsigned char seen_ = 0;
};

}  // namespace tranship
