// Private: Programs as text: the buffers and channels of each rank, and the steps of its blocks with the steps with
// which each of them pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tranship/program/replay.hpp>

namespace tranship {

/// Returns "4 ranks, 8 thread blocks, 120 steps".
std::string sizes_text(const Program& program);

/// Returns `input[0..2) of rank 3 -> output[0..2)`: the operands, channels and shares of a step. If there are more than
/// `list_max` of these, it writes the first ones, the last one, and their number.
std::string step_text(const Program& program, const StepPlace& place, std::size_t list_max = SIZE_MAX);

/// Returns "rank 3, block 0, step 2.1": the second step in the loop that is step 2.
std::string place_text(const StepPlace& place);

/// The arrows that begin or end at each step.
class StepArrows {
 public:
  /// Replays the program; loops run at most two iterations.
  explicit StepArrows(const Program& program);

  const std::vector<StepPlace>& steps() const noexcept { return replay_.steps; }
  const std::vector<StepArrow>& all() const noexcept { return replay_.arrows; }
  /// Returns the number of arrows that were dropped because there were too many.
  Index dropped() const noexcept { return replay_.arrows_dropped; }
  /// Returns the steps at which blocks that never end are stuck.
  const std::vector<std::int32_t>& stuck() const noexcept { return replay_.stuck; }
  /// Returns "signals rank 1, block 0, step 1; data from rank 1, block 0, step 3", or "" for a step without arrows.
  std::string text(std::int32_t step) const;

 private:
  Replay replay_;
  std::vector<std::int32_t> by_target_;           ///< indices of arrows
  std::vector<std::size_t> outgoing_, incoming_;  ///< for each step, where its arrows begin in either order
};

struct ProgramTextOptions {
  std::optional<Rank> rank = std::nullopt;  ///< only this rank
  Index steps_max = 4000;                   ///< ranks beyond this many steps are only counted
  /// With more ranks than this, a rank whose steps equal those of an earlier rank except for peers and chunks is only
  /// named, and long lists within a step are shortened.
  Rank ranks_unfolded_max = 4;
};

/// Returns, for each rank, the first rank that does the same steps, except for the peers and chunks that they name.
std::vector<Rank> first_ranks_alike(const Program& program);

/// Throws `bad_file` if check_structure does, and `invalid_use` for a rank that the program does not have.
std::string program_text(const Program& program, const ProgramTextOptions& options = {});

}  // namespace tranship
