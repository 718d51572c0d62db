#include <tranship/fabric/lanes/kernel_team.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

KernelTeam::KernelTeam(Team& team, CallSite where)
    : words_(team.world().heap_.lend_words(team, TeamView::words_count * sizeof(unsigned long long), where)) {
  const Members& members = team.members();
  view_ = {.first = members.first,
           .stride = members.stride,
           .count = members.count,
           .member = team.rank(),
           .words = static_cast<unsigned long long*>(words_.get())};
}

}  // namespace tranship
