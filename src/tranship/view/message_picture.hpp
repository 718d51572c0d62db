// Private: Pictures of what plans send, as SVG: the messages of one rank as bars on two sides, and the messages of all
// ranks as a matrix of senders and receivers.
//
// Both show messages, one per pair of ranks and direction, so they do not grow with the extents. If there are more
// peers than fit, the largest are shown; if there are more ranks, each square of the matrix stands for several.
#pragma once

#include <span>
#include <string>

#include <tranship/plan/explain.hpp>

namespace tranship {

/// Draws what one rank receives from each peer (on the left) and sends to it (on the right).
std::string messages_svg(const PlanSummary& plan);

/// Draws what each rank (a row) sends to each other rank (a column), and what it keeps, on the diagonal. If only some
/// ranks have plans, it also shows what these receive from the others. The plans must belong to one exchange, one per
/// rank; throws `invalid_use` for no plans, for two plans of one rank, and for plans of different kinds.
std::string messages_svg(std::span<const PlanSummary> plans);

}  // namespace tranship
