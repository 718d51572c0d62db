// Private: A program replayed in time: one launch on a machine model, as discrete events. The replay says when each
// step runs, what it waited for, and where the data that it reads came from; no bytes move.
//
// Each thread block, or on machines that step blocks in turn each rank, is a worker. The worker that is behind all
// others acts next, so that what it needs has been decided. Takes time about proportional to the steps executed.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <tranship/program/machine_model.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// Where a step stands in the program.
struct StepPlace {
  Rank rank = 0;
  std::int32_t block = 0;
  std::int32_t step = 0;
  std::int32_t inner = -1;  ///< in the loop of the step, or -1
  const Step* what = nullptr;
};

/// All steps: by rank, block and step; those of a loop follow it.
std::vector<StepPlace> places_of_steps(const Program& program);

/// One execution of a step. What it lasted since its cause ended is latency, bandwidth and queueing together.
struct StepEvent {
  static constexpr std::int32_t launch = -1, end_of_launch = -2;

  std::int32_t step = 0;  ///< in places_of_steps, or one of the two above
  Rank rank = 0;
  std::int32_t cause = -1;  ///< the event without which it would have begun earlier, or -1
  double begin_ns = 0, end_ns = 0;
  double latency_ns = 0, bandwidth_ns = 0, queued_ns = 0;
};

/// Something that one step needs of another one.
struct StepArrow {
  enum class Kind : std::uint8_t {
    signal,   ///< from a signal to the wait that takes it
    packets,  ///< from what writes packets to what reads them
    data,     ///< from what writes plain data to what reads it, on another rank
    release,  ///< from a release to the acquire that takes it
  };
  std::int32_t from = 0, to = 0;
  Kind kind = Kind::signal;

  friend bool operator==(const StepArrow&, const StepArrow&) = default;
  friend bool operator<(const StepArrow& a, const StepArrow& b) {
    return std::tie(a.from, a.to, a.kind) < std::tie(b.from, b.to, b.kind);
  }
};

const char* name_of(StepArrow::Kind kind) noexcept;

struct ReplayOptions {
  Index input_bytes = 1 << 20;       ///< of each rank
  Index iterations_max = INT64_MAX;  ///< of a loop; the rest is left out
  Index events_max = 20'000'000;
  enum class Arrows : std::uint8_t { leave_out, find } arrows = Arrows::leave_out;
  Index arrows_max = 4'000'000;
};

struct Replay {
  std::vector<StepPlace> steps;
  std::vector<StepEvent> events;  ///< in the order in which they began
  std::vector<StepArrow> arrows;  ///< each once, in order
  Index arrows_dropped = 0;       ///< beyond `arrows_max`, counted each time that they are found
  /// The longest that a rank takes from its begin to its end.
  double duration_ns = 0;
  std::int32_t last_event = -1;     ///< of the rank that takes longest
  std::vector<std::int32_t> stuck;  ///< steps at which blocks stand that never end, in order
};

/// The largest input of a rank that can be replayed.
inline constexpr Index replayed_bytes_max = Index(1) << 38;  // as a chunk, of which a buffer may have millions

/// A machine on which every step takes a unit of time, and nothing else any.
MachineModel step_by_step();

/// Bytes of one chunk where the largest input of a rank has so many bytes: whole units of 16 bytes.
Index bytes_of_chunks(const Program& program, Index input_bytes);

/// Chunks that a launch on the caller's memory copies before its first step and after its last one: those that peers
/// touch or that lie in place. Steps find all others where the caller has them.
struct LaunchCopies {
  Index input_chunks = 0, output_chunks = 0;
};
/// By rank.
std::vector<LaunchCopies> launch_copies_of(const Program& program);

/// What each host touches in one launch, which its rates depend on: the memories of its ranks' programs, and where
/// launches copy, what the callers bring and receive.
std::vector<double> bytes_touched_by_hosts(const Program& program, const MachineModel& machine, Index input_bytes);

/// Throws `bad_file` where check_structure does, `unsupported` where the machine lacks a link that the program uses,
/// and `invalid_use` where more than `events_max` steps would be executed.
Replay replay(const Program& program, const MachineModel& machine, const ReplayOptions& options = {});

}  // namespace tranship
