// Runs a program (program/program.hpp) on the ranks of a world, with one thread per rank. Thread blocks are state
// machines; the thread of a rank steps them in turn, each as far as it can go.
//
// The buffers of a program lie in the symmetric heap, in chunks of whole 16 bytes. Callers fill and read them there
// (input(), output()) or pass memory of their own: buffers that peers touch are then copied, and buffers that only this
// rank touches are used where they are. Signals are counters on cache lines of their own. A packet has 8 bytes, 4 of
// which are a flag, the number of the launch. Everything for peers whose memory is not reachable goes by one-sided
// transfers.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include <tranship/base/element_type.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// Steps combine in the order of the ranks that the data comes from, so ranks that combine the same data get the same
/// bits.
struct ProgramOptions {
  ElementType type = ElementType::f32;
  /// Replaces the reduction of all steps; empty: as the program says.
  std::optional<Reduction> reduction = std::nullopt;
};

/// Numbers of elements of one rank's input and output.
struct RankElements {
  Index input = 0, output = 0;
};
/// Returns the number of elements for which the executors of all ranks are made, computed from the input of `rank` or,
/// where it has no input, from its output. Throws `invalid_use` when its elements are not equal chunks, and for a
/// program in which some rank has neither.
Index elements_of(const Program& program, Rank rank, const RankElements& own);

class ProgramExecutor {
 public:
  /// Collective: all ranks pass the same program, number of elements and options. `elements` is that of the largest
  /// input of any rank; for a program without inputs, of one chunk. The inputs of known collectives are all of one
  /// size, and are cut into chunks of 16 bytes or multiples, of which the last ones may hold less. For other programs,
  /// `elements` is cut into equal chunks, and each rank passes and receives what its own chunks hold: input_elements()
  /// and output_elements().
  ///
  /// One rank verifies the program first, unless its process has already done so. Throws, on all ranks, `invalid_use`
  /// with the findings when the program is not right; what verify() throws; `mismatch` when programs, numbers or types
  /// differ; `invalid_use` when the world does not have the program's size, the input does not divide into parts of
  /// whole elements, or the elements lack a reduction; and `unsupported` for elements whose size does not divide 16
  /// bytes. The world must outlive the executor; the program need not.
  ProgramExecutor(World& world, const Program& program, Index elements, const ProgramOptions& options = {},
                  CallSite where = CallSite::here());
  ~ProgramExecutor();
  ProgramExecutor(ProgramExecutor&&) noexcept;
  ProgramExecutor& operator=(ProgramExecutor&&) noexcept;

  /// Sizes of this rank's input and output.
  Index input_elements() const noexcept;
  Index output_elements() const noexcept;

  /// Collective: one launch. When it returns, this rank's output is complete, and its input may change. Launches may
  /// follow each other at once; where a program needs it, all ranks meet in between. `input` and `output` may be the
  /// same memory. Throws `timeout` or `peer_lost` like other waits.
  void run(const void* input, void* output, CallSite where = CallSite::here());

  /// One launch from input() to output().
  void run(CallSite where = CallSite::here());

  /// The executor's own buffers: fill input() before a launch and read output() after it. They lie in the symmetric
  /// heap, never move, and are aligned to 16 bytes or more. Their contents stay until the next launch, which may
  /// overwrite both; for a program in place they overlap. Launches work on them without a copy, except where a part
  /// that begins with a chunk does not fill its chunks, because it has no multiple of 16 bytes for each: the parts of
  /// an alltoall, an allgather or a reducescatter, and the chunks of other programs that send packets or cut chunks for
  /// loops or groups of blocks.
  std::span<std::byte> input();
  std::span<std::byte> output();

  /// Steps that this rank has executed, and how often it looked in vain for what a step waits for.
  Index steps() const noexcept;
  Index polls() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
