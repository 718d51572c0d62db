// Plans as files: saved as JSON, loaded with every number checked, compared in words.
//
//   {"tranship_plan": 1, "kind": "redistribution", "rank": 0, "slots": [...], "peer_grids": [...],
//    "receives": [{"source_slot": 0, "target_slot": 1, "source_dims": [0], "target_dims": [0], "peer_grid": 0,
//      "axes": [[{"peer": 0, "runs": [[0, 0, 4]]}]]}], ...}
//
// A run is [source, target, length], or with count, source_pitch, target_pitch after it, or with source_step,
// target_step after those. What is the default is left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// A longer text is refused.
inline constexpr std::size_t plan_text_bytes_max = std::size_t(1) << 30;

/// The plan as text that ends with a newline: load_plan(save_plan(x)) == x for every x that a planner has
/// made.
std::string save_plan(const TransferPlan& plan);

/// Reads a plan and checks it: what is accepted reads and writes only inside the local arrays of its rank. Texts are
/// untrusted. `bad_text`, with the path of what does not belong there
/// (and with `column` where the text is no JSON), or `bad_file`, with the path and the numbers of what makes no sense.
Result<TransferPlan> try_load_plan(std::string_view text);
/// The same; throws the Error.
TransferPlan load_plan(std::string_view text);

/// The first differences, one a line, as "path: this, that"; empty when the plans are equal.
std::string diff_plans(const TransferPlan& a, const TransferPlan& b);

}  // namespace tranship
