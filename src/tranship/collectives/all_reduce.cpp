#include <algorithm>

#include <tranship/collectives/members.hpp>
#include <tranship/kernels/host/host_move.hpp>

namespace tranship {

namespace {

/// Every member combines one part; members with `is_target` then fetch the other parts.
void reduce_in_parts(MemberCall& call, Reduction reduction, bool is_target) {
  call.require_equal();
  call.require_apart_or_same();
  call.require_reduction(reduction);
  // Parts are whole cache lines, so that no two members write the same line.
  constexpr auto line = std::size_t(line_bytes);
  const std::size_t bytes = call.source_bytes();
  const std::size_t lines = (bytes + line - 1) / line;
  const std::size_t part = (lines + std::size_t(call.size()) - 1) / std::size_t(call.size()) * line;
  const auto first_of = [&](int member) { return std::min(bytes, std::size_t(member) * part); };

  call.begin();
  const std::size_t first = first_of(call.rank()), end = first_of(call.rank() + 1);
  call.combine(call.target() + first, call.source() + first, end - first, reduction);
  call.meet();
  for (int i = 1; is_target && i < call.size(); ++i) {
    const int member = (call.rank() + i) % call.size();
    std::byte* const at = call.target() + first_of(member);
    call.fetch(member, at, at, first_of(member + 1) - first_of(member));
  }
  call.complete();
  call.meet();
}

}  // namespace

void all_reduce(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction,
                CallSite where) {
  MemberCall call(team, CallKind::all_reduce, target, source, where, int(reduction));
  reduce_in_parts(call, reduction, true);
}

void reduce(Team& team, const SymmetricSpan& target, const SymmetricSpan& source, Reduction reduction, int root,
            CallSite where) {
  MemberCall::require_root(team, root, where);
  MemberCall call(team, CallKind::reduce, target, source, where, root << 3 | int(reduction));
  reduce_in_parts(call, reduction, team.rank() == root);
}

}  // namespace tranship
