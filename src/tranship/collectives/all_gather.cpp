#include <algorithm>

#include <tranship/collectives/members.hpp>

namespace tranship {

void all_gather(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, CallSite where) {
  const Index part_bytes = checked_multiply(std::max<Index>(source.count, 0), size_bytes(source.type));
  const bool is_in_place = part_bytes > 0 && target.type == source.type && target.count == team.size() * source.count &&
                           source.local == static_cast<std::byte*>(target.local) + team.rank() * part_bytes;
  // In place, the members pass different parts of one array as sources. They agree on the array instead.
  MemberCall call(team, CallKind::gather_symmetric, target, is_in_place ? target : source, where, is_in_place);
  if (!is_in_place) call.require_parts(call.size(), 1), call.require_apart();
  call.begin();
  for (int i = is_in_place ? 1 : 0; i < call.size(); ++i) {
    const int member = (call.rank() + i) % call.size();
    std::byte* const part = call.target() + member * part_bytes;
    call.fetch(member, part, is_in_place ? part : call.source(), std::size_t(part_bytes));
  }
  call.complete();
  call.meet();
}

}  // namespace tranship
