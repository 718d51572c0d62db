// Private: views of symmetric memory at peers, for direct loads and stores by callers that know element types at run
// time. Context::peer_array() and multicast_array() do this for types known at compile time.
#pragma once

#include <cstdint>

#include <tranship/base/call_site.hpp>
#include <tranship/base/strided_view.hpp>

namespace tranship {

class Context;
class Team;

/// Returns the same elements at a peer. Throws `unsupported` if its memory is not reachable, and `invalid_use` if
/// `view` is not symmetric memory.
StridedView at_peer(Context& rma, StridedView view, Rank peer, CallSite where);

/// The elements at all members of a team. Those of member m begin m * stride_bytes after those of the first member.
struct MulticastView {
  StridedView first;
  std::int64_t stride_bytes = 0;
  int members = 0;
};
/// Throws as at_peer() does for each member, and `unsupported` if the views do not begin at equal steps.
MulticastView at_members(Context& rma, const Team& team, const StridedView& view, CallSite where);

}  // namespace tranship
