// A transfer plan as a program of channel operations (program/program.hpp), which can be shown, proved, predicted and
// executed like any other program. On CPUs an exchange of the same plan is faster: it moves whole boxes, while the
// program has a step for every stretch of consecutive elements.
#pragma once

#include <span>
#include <vector>

#include <tranship/plan/transfer_plan.hpp>
#include <tranship/program/program.hpp>

namespace tranship {

struct PlanProgram {
  Program program;
  /// Elements in the input and in the output of every rank. All ranks have as many as the largest one. The elements of
  /// several arrays lie one after the other, each array dense and row-major; smaller ranks leave the rest unused.
  Index elements = 0;
  /// Where each array begins, per rank: in the input for arrays that are only read, else in the output.
  std::vector<std::vector<Index>> first_elements;
  ElementType type = ElementType::u8;
};

/// Returns the program of the plans of all ranks, which must come from the same call with the same arguments. A halo
/// works in place: its input is its output. Elements that a redistribution does not write are undefined in the output.
/// Throws `invalid_use` if the plans are not those of ranks 0, 1, ... in order. Throws `unsupported` if they combine,
/// negate or write zeros, if their arrays have elements of different sizes, or if the program would have more than 2^20
/// steps (the message gives the number of stretches).
PlanProgram program_of(std::span<const TransferPlan> plans);

}  // namespace tranship
