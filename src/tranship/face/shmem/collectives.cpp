#include "tranship/face/shmem/collectives.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/collectives/collectives.hpp>
#include <tranship/fabric/team.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/face/shmem/views.hpp>

namespace tranship {
namespace {

SymmetricSpan first_of(const SymmetricSpan& span, Index count) {
  return {span.local, span.type, count};
}

}  // namespace

void run_collective(ShmemCollective kind, Team& team, const StridedView& target_view, const StridedView& source_view,
                    Reduction reduction, int root, CallSite where) {
  const char* const name = shmem_collective_names[int(kind)];
  const SymmetricSpan target = span_of(target_view, name), source = span_of(source_view, name);
  const Index n = team.size(), smaller = std::min(target.count, source.count);
  const auto require = [&](const char* what, Index needed, Index size) {
    if (size < needed)
      throw_error(ErrorCode::invalid_use, "{}: the {} needs {}, has {} (rank {})", name, what,
                  amount(needed, "element"), size, team.world().rank());
  };
  switch (kind) {
    case ShmemCollective::reduce:
      return all_reduce(team, first_of(target, smaller), first_of(source, smaller), reduction, where);
    case ShmemCollective::broadcast:
      return broadcast(team, first_of(target, smaller), first_of(source, smaller), root, where);
    case ShmemCollective::reducescatter: {
      const Index whole = checked_multiply(n, target.count);
      require("source", whole, source.count);
      return reduce_scatter(team, target, first_of(source, whole), reduction, where);
    }
    case ShmemCollective::fcollect: {
      const Index whole = checked_multiply(n, source.count);
      require("target", whole, target.count);
      return all_gather(team, first_of(target, whole), source, where);
    }
    case ShmemCollective::alltoall:
      break;
  }
  if (smaller % n != 0)
    throw_error(ErrorCode::invalid_use, "{}: {} cannot be cut into {} of one size (rank {})", name,
                amount(smaller, "element"), amount(n, "part"), team.world().rank());
  return all_to_all(team, first_of(target, smaller), first_of(source, smaller), where);
}

}  // namespace tranship
