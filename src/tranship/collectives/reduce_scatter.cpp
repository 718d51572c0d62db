#include <tranship/collectives/members.hpp>

namespace tranship {

void reduce_scatter(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction,
                    CallSite where) {
  MemberCall call(team, CallKind::reduce_scatter, target, source, where, int(reduction));
  call.require_parts(1, call.size());
  const std::size_t own = std::size_t(call.rank()) * call.target_bytes();
  call.require_apart_or_same(0, own);
  call.require_reduction(reduction);
  call.begin();
  call.combine(call.target(), call.source() + own, call.target_bytes(), reduction);
  call.meet();
}

}  // namespace tranship
