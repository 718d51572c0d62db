// Executor runs execution plans on memory of the caller, as MSCCL++'s Executor does: one object for all plans and
// sizes. The first launch of a plan for one size and element type prepares it; later launches use what was prepared.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tranship/base/element_type.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// A plan for the ranks of a world. Copies share the plan.
class ExecutionPlan {
 public:
  explicit ExecutionPlan(Program program) : program_(std::make_shared<const Program>(std::move(program))) {}
  /// Reads a plan file of any format that read_program takes. Throws `io_error` for a file that cannot be read, and the
  /// errors of read_program.
  static ExecutionPlan read(const std::string& path);

  const Program& program() const noexcept { return *program_; }
  const std::string& name() const noexcept { return program_->name; }
  const std::string& collective() const noexcept { return program_->collective; }

 private:
  friend class Executor;
  std::shared_ptr<const Program> program_;
};

class Executor {
 public:
  /// The world must outlive it.
  explicit Executor(World& world);
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// Collective: runs one launch on contiguous elements; all ranks pass the same plan and type. A rank passes the bytes
  /// of its chunks, which in most plans are equal on all ranks. The launch is complete when the call returns. `input`
  /// and `output` may be the same memory. `reduction` overrides the reduction that the plan names.
  ///
  /// Before anything moves, throws `invalid_use` for a plan that fails verification, for bytes that are not whole
  /// elements or that the plan does not take (message_bytes_min and _max limit the input, or the output of an
  /// allgather), for an input or output of another size than the plan reads and writes, and for a plan in which a rank
  /// has neither; `timeout` and `peer_lost` as waits do.
  void execute(const ExecutionPlan& plan, const void* input, Index input_bytes, void* output, Index output_bytes,
               ElementType type, std::optional<Reduction> reduction = std::nullopt, CallSite where = CallSite::here());

  /// Collective: releases what earlier launches prepared. Later launches prepare again what they need.
  void reset();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
