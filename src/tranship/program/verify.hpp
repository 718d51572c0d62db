// Proves a program before it runs: that it ends, that no two accesses to the same memory are unordered, and that every
// output holds what the collective promises. What a program of no known collective does with scratch memory that
// nothing has written is its own affair.
//
// The program is executed on symbols, once for each kind of size (verify/cuts.hpp). That is enough: signals,
// semaphores, barriers and packets only ever enable steps, so every schedule ends in the same state unless two accesses
// race, and races are found by happens-before, not by chance. Several launches follow each other without a barrier
// between ranks, as they do when a program is used again and again; of a program that is right only with one, that is
// said. Other executors promise less at the end of a launch (LaunchedBy).
//
// What orders what:
// - Steps of a block are executed by all its threads. A step sees what an earlier one of the block did where the block
//   meets in between (nop, barrier). What a block does before it meets is published by the signals and releases after
//   it.
// - A wait sees what the signals before it published; a relaxed signal orders execution and publishes nothing that its
//   launch has written. The beginning and the end of a launch are full fences of the rank.
// - Packets carry their own data. A block that has read all packets of a step knows that the step and all before it
//   have run; what depends on one packet follows what made that packet, unit by unit.
// - Port channels carry out their requests in order and at their own time: a source may be overwritten after a flush,
//   after an answer to a signal that was sent behind it, or after the launch, which ends when its requests are done.
//
// What is accepted is right under every schedule; tests/program/mutation_test.cpp compares that with all of them, and
// tests/program/mscclpp_limits_test.cpp does so for launches by MSCCL++. Some
// programs are refused that are right as well: those that race where equal values, or none that is read, come out;
// those with signals that no wait takes; those whose loops take different numbers of turns; those that hold packets and
// plain data in the scratch of one rank, which lie at different bytes; those where two blocks take from one counter in
// any order; and those where a block hangs if the thread that signals has a part in a step before it.
#pragma once

#include <string>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

/// One fault of a program.
struct Finding {
  enum class Kind : std::uint8_t {
    deadlock,         ///< steps wait for each other, or for what nothing produces
    unpaired,         ///< a signal that nothing waits for, or a semaphore that is not as it was
    race,             ///< two accesses to the same bytes, one of them a write, that nothing orders
    missing_meeting,  ///< the same within one block, whose threads do not meet in between
    packets,          ///< packets and plain data in one place, or packets that are overwritten unread
    wrong_result,     ///< an output does not hold what the collective promises
    unproved,         ///< what happens depends on which of two blocks is faster
    mismatch,         ///< operands that a loop does not cut alike, or loops that take different numbers of turns
  };
  /// Which promise of an executor a fault would have needed; `none` where it is a fault of the steps under any.
  enum class Missing : std::uint8_t {
    none,
    meeting,          ///< ranks that meet between two launches
    end_of_launch,    ///< a launch that ends when what other ranks write has come
    port_completion,  ///< a port channel whose request is done before its memory is used again
    publication,      ///< relaxed signals, or packets, that publish what was written before them
  };
  Kind kind;
  Rank rank = -1;
  int block = -1;
  Index step = -1;
  std::string text;  ///< one or more lines, with all numbers
  Missing missing = Missing::none;
};

const char* name_of(Finding::Kind kind) noexcept;

/// Who launches a program, and so what the end of a launch promises.
enum class LaunchedBy : std::uint8_t {
  /// A launch ends when the requests of its port channels are done, and all that is known to have been executed is
  /// visible then. All ranks meet before the next launch of a program that needs it.
  tranship,
  /// The executor of MSCCL++: a launch ends with its thread blocks, makes visible what these have written or acquired,
  /// and completes no request. Ranks never meet. A flush does nothing.
  mscclpp,
};

struct VerifyOptions {
  int launches = 3;
  std::size_t findings_max = 20;  ///< those of later ones are counted only
  /// Comparisons of clocks and accesses: a second has ten millions of them, or more.
  Index work_max = 1'000'000'000;
  /// Accesses that are noted at a time, of some 50 bytes each.
  Index accesses_max = 30'000'000;
  LaunchedBy launched_by = LaunchedBy::tranship;
};

struct Verification {
  std::vector<Finding> findings;  ///< at most `findings_max`
  Index found = 0;                ///< all of them
  Index steps = 0;                ///< that were executed
  Index work = 0;                 ///< comparisons that this took
  bool knows_result = false;      ///< whether the collective has a meaning that was compared
  /// Right only where all ranks meet between two launches, because of what was found without.
  bool needs_meeting = false;
  std::vector<Finding> why_meeting;

  bool is_right() const noexcept { return found == 0; }
  /// One line a finding, or one line that says what was proved.
  std::string text() const;
};

/// Takes time about proportional to the number of steps times the number of thread blocks that meet, for each of the
/// sizes that are told apart: one, or a few where there are loops, and up to 4,096 where groups of hundreds of blocks
/// share steps. Takes memory that follows the number of steps, not that of chunks. Throws `bad_file` where
/// check_structure does, or where the numbers of chunks do not fit the collective; `invalid_use` for less than one
/// launch; `unsupported` where the proof takes more than `work_max` or `accesses_max`.
Verification verify(const Program& program, const VerifyOptions& options = {});

}  // namespace tranship
