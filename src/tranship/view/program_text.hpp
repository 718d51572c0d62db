// Private: Programs as text: what each rank has, and what its blocks do step by step, with the steps that each step
// pairs with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tranship/program/replay.hpp>

namespace tranship {

/// "4 ranks, 8 thread blocks, 120 steps"
std::string sizes_text(const Program& program);

/// `input[0..2) of rank 3 -> output[0..2)`: the operands, channels and shares of a step. Of a list of more than
/// `list_max` of these, the first ones and the last one are named, and all are counted.
std::string step_text(const Program& program, const StepPlace& place, std::size_t list_max = SIZE_MAX);

/// "rank 3, block 0, step 2.1": the second step in the loop that is step 2.
std::string place_text(const StepPlace& place);

/// The arrows that begin or end at each step.
class StepArrows {
 public:
  /// Replays the program, loops with two iterations at most.
  explicit StepArrows(const Program& program);

  const std::vector<StepPlace>& steps() const noexcept { return replay_.steps; }
  const std::vector<StepArrow>& all() const noexcept { return replay_.arrows; }
  /// How many were too many.
  Index dropped() const noexcept { return replay_.arrows_dropped; }
  /// Steps at which blocks stand that never end.
  const std::vector<std::int32_t>& stuck() const noexcept { return replay_.stuck; }
  /// "signals rank 1, block 0, step 1; data from rank 1, block 0, step 3": empty where there are none.
  std::string text(std::int32_t step) const;

 private:
  Replay replay_;
  std::vector<std::int32_t> by_target_;           ///< numbers of arrows
  std::vector<std::size_t> outgoing_, incoming_;  ///< of each step: where its arrows begin in either order
};

struct ProgramTextOptions {
  std::optional<Rank> rank = std::nullopt;  ///< only this one
  Index steps_max = 4000;                   ///< ranks after so many steps are counted only
  /// Of programs of more ranks, those whose steps are those of an earlier rank but for the peers and chunks are named
  /// only, and long lists within a step are shortened.
  Rank ranks_unfolded_max = 4;
};

/// Which ranks do the same steps but for whom and which chunks they name: for each rank, the first such one.
std::vector<Rank> first_ranks_alike(const Program& program);

/// Throws `bad_file` where check_structure does, and `invalid_use` for a rank that the program has not.
std::string program_text(const Program& program, const ProgramTextOptions& options = {});

}  // namespace tranship
