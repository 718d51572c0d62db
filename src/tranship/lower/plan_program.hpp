// A transfer plan as a program of channel operations (program/program.hpp), to be shown, proved, predicted and executed
// like any other. On CPUs the exchange that the plan is for is faster: it moves whole boxes, where a program has a step
// for every stretch of neighbouring elements.
#pragma once

#include <span>
#include <vector>

#include <tranship/plan/transfer_plan.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

struct PlanProgram {
  Program program;
  /// What the input and the output of every rank have: as many as the largest one, so that all have as many. Elements
  /// of several arrays lie one after the other, each dense and row-major, those of smaller ranks without what is
  /// missing.
  Index elements = 0;
  /// Where each array begins, for each rank; of arrays that are read only in the input, else in the output.
  std::vector<std::vector<Index>> first_elements;
  ElementType type = ElementType::u8;
};

/// The program of the plans of all ranks, which come from one call with the same arguments. A halo works in place: its
/// input is its output. What the plan of a redistribution does not write holds anything in the output. Throws
/// `invalid_use` where the plans are not those of ranks 0, 1, ... in order; `unsupported` where they combine, negate or
/// write zeros, where their arrays have elements of different sizes, or where the program would have more than 2^20
/// steps (the message says how many stretches there are).
PlanProgram program_of(std::span<const TransferPlan> plans);

}  // namespace tranship
