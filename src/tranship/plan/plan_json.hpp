// Plans as files: saves them as JSON, loads them with a check of every number, and lists differences in words.
//
//   {"tranship_plan": 1, "kind": "redistribution", "rank": 0, "slots": [...], "peer_grids": [...],
//    "receives": [{"source_slot": 0, "target_slot": 1, "source_dims": [0], "target_dims": [0], "peer_grid": 0,
//      "axes": [[{"peer": 0, "runs": [[0, 0, 4]]}]]}], ...}
//
// A run is [source, target, length], optionally followed by count, source_pitch, target_pitch, and then by source_step,
// target_step. Default values are left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// A longer text is refused.
inline constexpr std::size_t plan_text_bytes_max = std::size_t(1) << 30;

/// Returns the plan as text with a final newline: load_plan(save_plan(x)) == x for every x that a planner has made.
std::string save_plan(const TransferPlan& plan);

/// Reads an untrusted text and checks the plan: one that is accepted reads and writes only inside the local arrays of
/// its rank. Fails with `bad_text` and the path of a wrong key or type (with `column` where the text is not JSON), and
/// with `bad_file`, the path and the numbers for values that make no sense.
Result<TransferPlan> try_load_plan(std::string_view text);
/// Reads a plan; throws the Error of try_load_plan().
TransferPlan load_plan(std::string_view text);

/// Returns the first differences, one per line, as "path: this, that". Returns "" when the plans are equal.
std::string diff_plans(const TransferPlan& a, const TransferPlan& b);

}  // namespace tranship
