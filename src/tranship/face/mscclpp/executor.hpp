// Runs execution plans on memory of the caller, as MSCCL++'s Executor does: one object for all plans and sizes. What a
// plan needs for one size and type of element is made at its first launch, and kept.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <tranship/base/element_type.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

/// A plan for the ranks of a world. Copies are the same plan.
class ExecutionPlan {
 public:
  explicit ExecutionPlan(Program program) : program_(std::make_shared<const Program>(std::move(program))) {}
  /// A plan file of any format that read_program takes. Throws `io_error` for a file that cannot be read, and what
  /// read_program throws.
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

  /// Collective: one launch on contiguous elements; all ranks bring the same plan and type. The bytes of a rank are
  /// those of its chunks, which most plans have alike. It is complete when it returns. `input` and `output` may be the
  /// same memory. `reduction` goes before what the plan names.
  ///
  /// Throws `invalid_use`, before anything moves, for a plan that is not right, for bytes that are no whole elements or
  /// that the plan does not take (message_bytes_min and _max: of the input, of an allgather the output), and for an
  /// input or output of another size than the plan takes and gives, or a plan in which a rank has neither; `timeout`
  /// and `peer_lost` as waits do.
  void execute(const ExecutionPlan& plan, const void* input, Index input_bytes, void* output, Index output_bytes,
               ElementType type, std::optional<Reduction> reduction = std::nullopt, CallSite where = CallSite::here());

  /// Collective: releases what was made for earlier launches. Launches that follow make anew what they need.
  void reset();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
