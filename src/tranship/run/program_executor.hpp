// Runs a program (program/program.hpp) on the ranks of a world, on one thread each: thread blocks are state machines
// that the thread of their rank steps in turn, as far as each can go.
//
// The buffers of the program lie in the symmetric heap, with chunks of whole 16 bytes; what the caller passes is copied
// there and back. Signals are counters on cache lines of their own; packets are 8 bytes, 4 of which are a flag, the
// number of the launch. To peers whose memory is not reachable, everything goes by one-sided transfers.
#pragma once

#include <memory>
#include <optional>

#include <tranship/base/element_type.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

struct ProgramOptions {
  ElementType type = ElementType::f32;
  /// Instead of what the program says.
  std::optional<Reduction> reduction = std::nullopt;
};

class ProgramExecutor {
 public:
  /// Collective: all ranks bring the same program and numbers. `elements` is what the input of each rank has; of
  /// programs without input, what a chunk has. Verifies the program first and throws `invalid_use` with what was found,
  /// where it is not right; `mismatch` on every rank where their programs differ; `invalid_use` where the world is not
  /// as large as the program, the parts of the input are no whole numbers of elements, or the elements have no such
  /// reduction. The world must outlive it.
  ProgramExecutor(World& world, Program program, Index elements, const ProgramOptions& options = {},
                  CallSite where = CallSite::here());
  ~ProgramExecutor();
  ProgramExecutor(ProgramExecutor&&) noexcept;
  ProgramExecutor& operator=(ProgramExecutor&&) noexcept;

  Index input_elements() const noexcept;
  Index output_elements() const noexcept;

  /// Collective: one launch. When it returns, the output of this rank is complete, and the input may change. Launches
  /// may follow each other at once; of programs that are right only where ranks meet between launches, they meet.
  /// `input` and `output` may be the same memory. Throws `timeout` or `peer_lost` as waits do.
  void run(const void* input, void* output, CallSite where = CallSite::here());

  /// Steps that this rank has executed, and how often it looked in vain at what a step waits for.
  Index steps() const noexcept;
  Index polls() const noexcept;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace tranship
