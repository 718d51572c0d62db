// Runs a program (program/program.hpp) on the ranks of a world, on one thread each: thread blocks are state machines
// that the thread of their rank steps in turn, as far as each can go.
//
// The buffers of the program lie in the symmetric heap, with chunks of whole 16 bytes. Callers fill and read them there
// (input(), output()), or pass memory of their own: what peers touch is then copied, and what this rank alone touches
// is used where it is. Signals are counters on cache lines of their own; packets are 8 bytes, 4 of which are a flag,
// the number of the launch. To peers whose memory is not reachable, everything goes by one-sided transfers.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include <tranship/base/element_type.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// What a step combines, it combines in the order of the ranks that the data comes from: ranks that combine the same
/// get the same bits.
struct ProgramOptions {
  ElementType type = ElementType::f32;
  /// Instead of what the program says.
  std::optional<Reduction> reduction = std::nullopt;
};

/// What one rank brings and takes.
struct RankElements {
  Index input = 0, output = 0;
};
/// The number of elements with which executors of all ranks are made, where `rank` has so many: from its input, or from
/// its output where it has no input. Throws `invalid_use` where they are no equal chunks, and for a program in which
/// any rank has neither.
Index elements_of(const Program& program, Rank rank, const RankElements& own);

class ProgramExecutor {
 public:
  /// Collective: all ranks bring the same program and numbers. `elements` is what the largest input of any rank has; of
  /// programs without input, what a chunk has. Inputs of collectives that promise something are all as large, and are
  /// cut into chunks of 16 bytes or multiples, of which the last ones may hold less. Of other programs, `elements` are
  /// cut into equal chunks, and each rank brings and takes as many as its own chunks hold: input_elements() and
  /// output_elements().
  ///
  /// One rank verifies the program first, unless its process has done so; all throw `invalid_use` with what was found,
  /// where it is not right; `mismatch` where their programs differ; `invalid_use` where the world is not as large as
  /// the program, the parts of the input are no whole numbers of elements, or the elements have no such reduction. The
  /// world must outlive it; the program is not needed any more.
  ProgramExecutor(World& world, const Program& program, Index elements, const ProgramOptions& options = {},
                  CallSite where = CallSite::here());
  ~ProgramExecutor();
  ProgramExecutor(ProgramExecutor&&) noexcept;
  ProgramExecutor& operator=(ProgramExecutor&&) noexcept;

  /// Of this rank.
  Index input_elements() const noexcept;
  Index output_elements() const noexcept;

  /// Collective: one launch. When it returns, the output of this rank is complete, and the input may change. Launches
  /// may follow each other at once; of programs that are right only where ranks meet between launches, they meet.
  /// `input` and `output` may be the same memory. Throws `timeout` or `peer_lost` as waits do.
  void run(const void* input, void* output, CallSite where = CallSite::here());

  /// The same from input() to output().
  void run(CallSite where = CallSite::here());

  /// Buffers of this executor that hold what run() takes and gives, to be filled before a launch and read after it.
  /// They stay where they are, aligned to 16 bytes or more, and what they hold stays until the next launch, which may
  /// overwrite both: where a program works in place they are one. They lie in the symmetric heap, where launches work
  /// on them without a copy. Launches copy them only where what begins with a chunk is no multiple of 16 bytes for each
  /// of its chunks: the parts of an alltoall, an allgather or a reducescatter, and the chunks of programs that promise
  /// nothing and send packets, or cut chunks for loops or groups of blocks.
  std::span<std::byte> input();
  std::span<std::byte> output();

  /// Steps that this rank has executed, and how often it looked in vain at what a step waits for.
  Index steps() const noexcept;
  Index polls() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
