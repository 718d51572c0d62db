// Private: replays one launch of a program on a machine model, as discrete events. A replay says when each step runs,
// what it waited for, and where its data came from; no bytes move.
//
// Each thread block is a worker or, on machines that step blocks in turn, each rank. The worker with the earliest time
// acts next, so all that it may need has been decided. The time taken is about proportional to the steps executed.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include <tranship/program/machine_model.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// The position of a step in the program.
struct StepPlace {
  Rank rank = 0;
  std::int32_t block = 0;
  std::int32_t step = 0;
  std::int32_t inner = -1;  ///< index in the loop of the step; -1: the step itself
  const Step* what = nullptr;
};

/// All steps by rank, block and step; the steps of a loop follow the loop.
std::vector<StepPlace> places_of_steps(const Program& program);

/// One execution of a step. Its latency, bandwidth and queueing times add up to its time since its cause ended.
struct StepEvent {
  static constexpr std::int32_t launch = -1, end_of_launch = -2;

  std::int32_t step = 0;  ///< index in places_of_steps(), or one of the two above
  Rank rank = 0;
  std::int32_t cause = -1;  ///< the event without which it would have begun earlier; -1: none
  double begin_ns = 0, end_ns = 0;
  double latency_ns = 0, bandwidth_ns = 0, queued_ns = 0;
};

/// A dependence of one step on another.
struct StepArrow {
  enum class Kind : std::uint8_t {
    signal,   ///< from a signal to the wait that takes it
    packets,  ///< from a write of packets to the read of them
    data,     ///< from a write of plain data to a read of it on another rank
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
  Index input_bytes = 1 << 20;       ///< size of each rank's input
  Index iterations_max = INT64_MAX;  ///< limit of the iterations of a loop; further ones are left out
  Index events_max = 20'000'000;
  enum class Arrows : std::uint8_t { leave_out, find } arrows = Arrows::leave_out;
  Index arrows_max = 4'000'000;
};

struct Replay {
  std::vector<StepPlace> steps;
  std::vector<StepEvent> events;  ///< in the order in which they began
  std::vector<StepArrow> arrows;  ///< sorted, without repetition
  Index arrows_dropped = 0;       ///< found beyond `arrows_max`, counted each time
  /// The longest time that a rank takes from its beginning to its end.
  double duration_ns = 0;
  std::int32_t last_event = -1;     ///< the last event of the rank that takes longest
  std::vector<std::int32_t> stuck;  ///< steps, in order, at which blocks wait for ever
};

/// The largest input of a rank that can be replayed.
inline constexpr Index replayed_bytes_max = Index(1) << 38;  // as a chunk, of which a buffer may have millions

/// A machine on which every step takes one unit of time and nothing else takes any.
MachineModel step_by_step();

/// Bytes of one chunk when the largest input of a rank has `input_bytes`: a multiple of 16 bytes.
Index bytes_of_chunks(const Program& program, Index input_bytes);

/// The chunks that a launch on the caller's own memory copies before its first step and after its last one: buffers
/// that peers touch or that are in place, and inputs that steps write. Other buffers are used where the caller has
/// them.
struct LaunchCopies {
  Index input_chunks = 0, output_chunks = 0;
};
/// By rank.
std::vector<LaunchCopies> launch_copies_of(const Program& program);

/// Bytes that each host touches in one launch, on which its rates depend: the memories of its ranks' programs and,
/// where launches copy, the caller's memory.
std::vector<double> bytes_touched_by_hosts(const Program& program, const MachineModel& machine, Index input_bytes);

/// Throws `bad_file` where check_structure does, `unsupported` when the machine lacks a link that the program uses, and
/// `invalid_use` when the input is too large or more than `events_max` steps would be executed.
Replay replay(const Program& program, const MachineModel& machine, const ReplayOptions& options = {});

}  // namespace tranship
