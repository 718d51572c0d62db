#include <tranship/base/fail.hpp>
#include <tranship/collectives/members.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

void broadcast(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, int root, CallSite where) {
  if (root < 0 || root >= team.size())
    throw_error(ErrorCode::invalid_use, "no root {} in a team of {} (rank {}, {})", root, team.size(),
                team.world().rank(), short_name(where));
  MemberCall call(team, CallKind::broadcast_symmetric, target, source, where, root);
  call.require_equal();
  call.require_apart_or_same();
  call.meet();
  if (call.rank() != root || call.target() != call.source())
    call.fetch(root, call.target(), call.source(), call.source_bytes());
  call.complete();
  call.meet();
}

}  // namespace tranship
