#include "tranship/fabric/lanes/kernel_team.hpp"

#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

KernelTeam::KernelTeam(Team& team, CallSite where)
    : words_(team.world().heap_->lend_words(team, TeamView::words_count * sizeof(unsigned long long), where)),
      members_(team.members()) {
  view_ = {.first = members_.first,
           .stride = members_.stride,
           .count = members_.count,
           .member = team.rank(),
           .words = static_cast<unsigned long long*>(words_.get()),
           .ranks = members_.list()};
}

}  // namespace tranship
