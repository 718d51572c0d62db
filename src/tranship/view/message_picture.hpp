// Private: Pictures of what plans send, as SVG: the messages of one rank as bars on two sides, and those of all ranks
// as a matrix of senders and receivers.
//
// Both are made of messages, one for each pair of ranks and direction, so they do not grow with the extents. Of more
// peers than fit, the largest are shown; of more ranks than fit, each square of the matrix stands for several.
#pragma once

#include <span>
#include <string>

#include <tranship/plan/explain.hpp>

namespace tranship {

/// What one rank receives from each peer (to the left) and sends to it (to the right).
std::string messages_svg(const PlanSummary& plan);

/// What each rank (a row) sends to each other (a column), with what it keeps on the diagonal. Of plans of some ranks
/// only, what these receive from the others is shown, too. The plans are of one exchange, one for each rank; throws
/// `invalid_use` for none, for two of one rank, and for plans of different kinds.
std::string messages_svg(std::span<const PlanSummary> plans);

}  // namespace tranship
