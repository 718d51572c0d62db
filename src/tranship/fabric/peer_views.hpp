// Private: views of symmetric memory at peers, to be loaded and stored, for callers that know element types at run
// time. Context::peer_array() and multicast_array() are their twins for types that are known.
#pragma once

#include <cstdint>

#include <tranship/base/call_site.hpp>
#include <tranship/base/strided_view.hpp>

namespace tranship {

class Context;
class Team;

/// The same elements at a peer. Throws `unsupported` where its memory is not reachable, and `invalid_use` for what is
/// not symmetric.
StridedView at_peer(Context& rma, StridedView view, Rank peer, CallSite where);

/// The same elements at all members of a team: those of member m begin m * stride_bytes behind those of the first one.
struct MulticastView {
  StridedView first;
  std::int64_t stride_bytes = 0;
  int members = 0;
};
/// Throws as at_peer does, for any of them, and `unsupported` where they do not begin at equal steps.
MulticastView at_members(Context& rma, const Team& team, const StridedView& view, CallSite where);

}  // namespace tranship
