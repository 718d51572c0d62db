#include <tranship/collectives/members.hpp>

namespace tranship {

void all_to_all(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, CallSite where) {
  MemberCall call(team, CallKind::all_to_all, target, source, where);
  call.require_parts(call.size(), call.size());
  call.require_apart();
  const std::size_t part = call.source_bytes() / std::size_t(call.size());
  call.begin();
  for (int i = 0; i < call.size(); ++i) {
    const int member = (call.rank() + i) % call.size();
    call.fetch(member, call.target() + std::size_t(member) * part, call.source() + std::size_t(call.rank()) * part,
               part);
  }
  call.complete();
  call.meet();
}

}  // namespace tranship
