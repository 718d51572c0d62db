// Proves a program before it runs: it ends, no two unordered accesses touch the same memory, and every output holds
// what the collective promises. A program of no known collective may do what it likes with scratch that was never
// written.
//
// The program is executed on symbols, once for each kind of size (verify/cuts.hpp). That suffices: signals, semaphores,
// barriers and packets only ever enable steps, so every schedule ends in the same state unless two accesses race, and
// races are found by happens-before, not by chance. Several launches follow each other without a barrier between ranks,
// as in repeated use; a program that is right only with such a barrier is reported so. Other executors promise less at
// the end of a launch (LaunchedBy).
//
// Rules of order:
// - All threads of a block execute each of its steps. A step sees the effects of an earlier step of the block when the
//   block meets in between (nop, barrier). Signals and releases publish what the block did before it last met.
// - A wait sees what the signals that it takes have published. A relaxed signal orders execution and publishes nothing
//   that its launch has written. The beginning and the end of a launch are full fences of the rank.
// - Packets carry their own data. A block that has read all packets of a step knows that this step and all before it
//   have run. What depends on one packet follows what made that packet, unit by unit.
// - Port channels carry out their requests in order, at their own time. A source may be overwritten after a flush,
//   after an answer to a signal that was sent behind it, or after the launch, which ends when its requests are done.
//
// An accepted program is right under every schedule; tests/program/mutation_test.cpp compares this with all schedules,
// and tests/program/mscclpp_limits_test.cpp does so for launches by MSCCL++. Some right programs are refused: those
// whose races write equal values or values that are never read; those with signals that no wait takes; those whose
// loops take different numbers of turns; those that hold packets and plain data in the scratch of one rank, which lie
// at different bytes; those where two blocks take from one counter in any order; and those where a block hangs if the
// thread that signals takes part in a step before it.
#pragma once

#include <string>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

/// One fault of a program.
struct Finding {
  enum class Kind : std::uint8_t {
    deadlock,         ///< steps wait for each other, or for something that no step produces
    unpaired,         ///< a signal that no wait takes, or a semaphore that does not return to its initial value
    race,             ///< two unordered accesses to the same bytes, one of them a write
    missing_meeting,  ///< such accesses inside one block, whose threads do not meet in between
    packets,          ///< packets and plain data in one place, or packets that are overwritten unread
    wrong_result,     ///< an output does not hold what the collective promises
    unproved,         ///< the result depends on which of two blocks is faster
    mismatch,         ///< operands that a loop does not cut alike, or loops that take different numbers of turns
  };
  /// The promise of an executor that would have prevented the fault; `none` for a fault under any executor.
  enum class Missing : std::uint8_t {
    none,
    meeting,          ///< ranks meet between two launches
    end_of_launch,    ///< a launch ends only when the writes of other ranks have arrived
    port_completion,  ///< a request of a port channel is complete before its memory is used again
    publication,      ///< relaxed signals, or packets, publish what was written before them
  };
  Kind kind;
  Rank rank = -1;
  int block = -1;
  Index step = -1;
  std::string text;  ///< one or more lines, with all numbers
  Missing missing = Missing::none;
};

const char* name_of(Finding::Kind kind) noexcept;

/// The executor that launches a program, which decides what the end of a launch promises.
enum class LaunchedBy : std::uint8_t {
  /// This library: a launch ends when the requests of its port channels are complete, and then everything known to be
  /// executed is visible. All ranks meet before the next launch of a program that needs it.
  tranship,
  /// The executor of MSCCL++: a launch ends with its thread blocks, makes visible what these have written or acquired,
  /// and completes no request. Ranks never meet. A flush does nothing.
  mscclpp,
};

struct VerifyOptions {
  int launches = 3;
  std::size_t findings_max = 20;  ///< further findings are only counted
  /// Limit of comparisons of clocks and accesses; a second has ten million of them or more.
  Index work_max = 1'000'000'000;
  /// Limit of accesses recorded at one time, of some 50 bytes each.
  Index accesses_max = 30'000'000;
  LaunchedBy launched_by = LaunchedBy::tranship;
};

struct Verification {
  std::vector<Finding> findings;  ///< at most `findings_max`
  Index found = 0;                ///< number of all findings
  Index steps = 0;                ///< executed
  Index work = 0;                 ///< comparisons
  bool knows_result = false;      ///< true: the outputs were compared with what the collective promises
  /// True: right only if all ranks meet between two launches; `why_meeting` has the findings without that.
  bool needs_meeting = false;
  std::vector<Finding> why_meeting;

  bool is_right() const noexcept { return found == 0; }
  /// One line per finding, or a line that says what was proved.
  std::string text() const;
};

/// Proves a program, or lists its faults. Takes time about proportional to the number of steps times the number of
/// thread blocks that meet, for each size that must be distinguished: one, a few with loops, and up to 4,096 where
/// groups of hundreds of blocks share steps. Memory grows with the number of steps, not of chunks. Throws `bad_file`
/// where check_structure does or the numbers of chunks do not fit the collective, `invalid_use` for less than one
/// launch, and `unsupported` when the proof exceeds `work_max` or `accesses_max`.
Verification verify(const Program& program, const VerifyOptions& options = {});

}  // namespace tranship
