#include "tranship/fabric/shared/shared_fabric.hpp"

#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/shared/shared_clock.hpp>
#include <tranship/fabric/shared/shared_domain.hpp>
#include <tranship/fabric/shared/shared_meeting.hpp>

namespace tranship {
namespace {

std::shared_ptr<Domain> or_shared(std::shared_ptr<Domain> domain, const std::shared_ptr<SharedWorld>& shared, Rank rank,
                                  int ranks, const Members& here) {
  return domain ? std::move(domain) : std::make_shared<SharedDomain>(shared, rank, ranks, here);
}
std::shared_ptr<Clock> or_shared(std::shared_ptr<Clock> clock, const SharedWorld& shared, int ranks) {
  return clock ? std::move(clock) : std::make_shared<SharedClock>(ranks, shared.shape().cores);
}

}  // namespace

SharedFabric::SharedFabric(std::shared_ptr<SharedWorld> shared, Rank rank, Board& board, const Members& here,
                           std::shared_ptr<Domain> domain, std::shared_ptr<Clock> clock)
    : Fabric(rank, board, or_shared(std::move(domain), shared, rank, board.ranks(), here),
             or_shared(std::move(clock), *shared, here.count)),
      shared_(std::move(shared)),
      here_(here),
      member_(here.member_of(rank)),
      team_slots_(shared_->shape().teams),
      brought_(static_cast<std::size_t>(shared_->shape().teams)) {}

std::unique_ptr<SharedMeeting> SharedFabric::shared_meeting(const Members& members, int slot, const Members& named) {
  shared_->obtain_slot(slot);
  wait_for_readers(slot);
  return std::make_unique<SharedMeeting>(*shared_, board(), here_, rank(), members, slot, named,
                                         brought_[std::size_t(slot)]);
}

void SharedFabric::wait_for_readers(int slot) {
  // All members have reached that meeting, so none waits for this rank before it reads.
  const auto& [members, meeting] = brought_[std::size_t(slot)];
  const Deadline deadline = Deadline::after_seconds(60);
  for (int member = 0; member < members.count; ++member) {
    const Rank peer = members.rank_of(member);
    if (peer == rank()) continue;
    for (int round = 0; shared_->read_until(member_of(peer), slot).load_acquire() < meeting && !board().ended(peer);
         ++round) {
      if (clock().passed(deadline))
        throw_error(ErrorCode::timeout, "rank {} has not read in 60 s what rank {} brought to meeting {} of a team: {}",
                    peer, rank(), meeting, board().line(peer));
      clock().idle(round);
    }
  }
}

}  // namespace tranship
