#include <tranship/collectives/members.hpp>

namespace tranship {

void broadcast(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, int root, CallSite where) {
  MemberCall::require_root(team, root, where);
  MemberCall call(team, CallKind::broadcast_symmetric, target, source, where, root);
  call.require_equal();
  call.require_apart_or_same();
  call.begin(call.rank() == root ? call.source_bytes() : 0);
  if (call.rank() != root || call.target() != call.source())
    call.fetch(root, call.target(), call.source(), call.source_bytes());
  call.complete();
  call.meet();
}

}  // namespace tranship
