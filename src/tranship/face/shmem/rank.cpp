#include "tranship/face/shmem/rank.hpp"

#include <algorithm>

#include <pthread.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

[[gnu::tls_model("initial-exec")]] constinit thread_local ShmemRank* ShmemRank::current_ = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local Context* ShmemRank::direct_ = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local const detail::DirectTransfers* ShmemRank::direct_transfers_ =
    nullptr;

namespace {
// NVSHMEM's numbers.
constexpr int team_invalid = -1, teams_of_all = 6;

/// Returns the team of the ranks with this rank's position on their machines; nothing if machines differ in ranks.
std::optional<Team> team_of_same_place(World& world, CallSite where) {
  struct Place {
    int place, ranks;
  };
  Team& all = world.team();
  const Place mine{world.node_team().rank(), world.node_team().size()};
  const std::vector<Place> places = world.all_gather(mine, where);
  bool are_blocks = true;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    const Place& one = places[std::size_t(rank)];
    if (one.ranks != mine.ranks) return std::nullopt;
    are_blocks &= one.place == rank % mine.ranks;
  }
  if (are_blocks) return all.split_2d(mine.ranks, where).y;
  std::optional<Team> own;
  for (int place = 0; place < mine.ranks; ++place) {
    std::vector<int> members;
    for (Rank rank = 0; rank < world.size(); ++rank)
      if (places[std::size_t(rank)].place == place) members.push_back(rank);
    if (std::optional<Team> team = all.split_listed(members, where)) own = std::move(team);
  }
  return own;
}
}  // namespace

ShmemRank::ShmemRank(World& world, CallSite where) : world_(&world) {
  Team& all = world.team();
  Team alone = all.split_2d(1, where).x;  // each rank counts as a device of its own
  teams_ = {all, world.shared_team(), world.node_team(), team_of_same_place(world, where), alone, all};
}

ShmemRank::~ShmemRank() {
  leave();
}

void ShmemRank::end_in_children() {
  pthread_atfork(nullptr, nullptr, &make_none_current);
}

void ShmemRank::make_current() noexcept {
  Context& context = world_->context();
  current_ = this;
  direct_ = context.completes_at_once() ? &context : nullptr;
  direct_transfers_ = direct_ != nullptr ? &direct_->direct_transfers() : nullptr;
}
void ShmemRank::make_none_current() noexcept {
  current_ = nullptr;
  direct_ = nullptr;
  direct_transfers_ = nullptr;
}
void ShmemRank::leave() noexcept {
  teams_.clear();
  world_ = nullptr;
  if (current_ == this) make_none_current();
}

ShmemRank& ShmemRank::of_this_thread() {
  if (current_ == nullptr)
    throw_error(ErrorCode::invalid_use,
                "this thread is no rank that has called init(): symmetric memory is used by the thread of its rank");
  return *current_;
}
std::ptrdiff_t ShmemRank::direct_from_thread_pointer() noexcept {
  return reinterpret_cast<const std::byte*>(&direct_transfers_) -
         static_cast<const std::byte*>(__builtin_thread_pointer());
}

World& ShmemRank::world() const {
  if (world_ == nullptr)
    throw_error(ErrorCode::invalid_use, "the rank has left its world, or the function that it was for has returned");
  world_->check_process();
  return *world_;
}

bool ShmemRank::is_turned(const void* target, const void* source) const {
  return is_symmetric(source) && !is_symmetric(target) && !is_in_any_heap(target);
}
bool ShmemRank::is_in_any_heap(const void* address) const {
  const HeapPlace& place = world().heap().place();
  for (Rank rank = 0; rank < world().size(); ++rank)
    if (const std::byte* heap = place.mapped.of(rank))
      if (static_cast<std::size_t>(static_cast<const std::byte*>(address) - heap) < place.size_bytes) return true;
  return false;
}
bool ShmemRank::is_symmetric(const void* address) const {
  const HeapPlace& place = world().heap().place();
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - place.own) < place.size_bytes;
}

Team& ShmemRank::team(int number) {
  if (number < 0 || number >= int(teams_.size()) || !teams_[std::size_t(number)])
    throw_error(ErrorCode::invalid_use, "there is no team {} (rank {})", number, world().rank());
  return *teams_[std::size_t(number)];
}
int ShmemRank::add(std::optional<Team> team) {
  if (!team) return team_invalid;
  const auto free = std::find(teams_.begin() + teams_of_all, teams_.end(), std::nullopt);
  if (free != teams_.end()) {
    *free = std::move(team);
    return int(free - teams_.begin());
  }
  teams_.push_back(std::move(team));
  return int(teams_.size()) - 1;
}
void ShmemRank::remove(int number) {
  team(number);
  if (number < teams_of_all)
    throw_error(ErrorCode::invalid_use, "team {} is predefined: it cannot be destroyed (rank {})", number,
                world().rank());
  teams_[std::size_t(number)].reset();
}

}  // namespace tranship
