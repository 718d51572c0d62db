#include "tranship/fabric/shared/shared_fabric.hpp"

#include <algorithm>

#include <time.h>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/shared/shared_meeting.hpp>
#include <tranship/memory/device/host_device.hpp>

namespace tranship {

SharedFabric::SharedFabric(std::shared_ptr<SharedWorld> shared, Rank rank, Board& board, const Members& here)
    : Fabric(rank, board.ranks(), board),
      shared_(std::move(shared)),
      here_(here),
      member_(here.member_of(rank)),
      team_slots_(shared_->shape().teams),
      brought_(static_cast<std::size_t>(shared_->shape().teams)),
      // A rank that has its core to itself may spin for longer than a large message takes. With more ranks than cores,
      // a rank that spins keeps the one it waits for from running.
      has_cores_(here.count <= shared_->shape().cores),
      ranks_per_core_(std::max(1, here.count / std::max(1, shared_->shape().cores))) {}

std::unique_ptr<SharedMeeting> SharedFabric::shared_meeting(const Members& members, int slot, const Members& named) {
  shared_->obtain_slot(slot);
  wait_for_readers(slot);
  return std::make_unique<SharedMeeting>(*shared_, board(), here_, rank(), members, slot, named,
                                         brought_[std::size_t(slot)]);
}

HeapPlace SharedFabric::heap() const {
  HeapPlace place{.own = shared_->heap_of(member_),
                  .size_bytes = shared_->heap_bytes(),
                  .mapped = shared_->heaps(),
                  .alignment_bytes = SharedMemory::alignment_bytes};
  if (here_ != Members{.count = size()}) {
    std::vector<HeapAddresses::Address> heaps(static_cast<std::size_t>(size()));
    for (int member = 0; member < here_.count; ++member)
      heaps[static_cast<std::size_t>(here_.rank_of(member))] =
          reinterpret_cast<HeapAddresses::Address>(shared_->heap_of(member));
    place.mapped = HeapAddresses(std::move(heaps));
  }
  place.direct = place.mapped;
  return place;
}

void SharedFabric::wait_for_readers(int slot) {
  // They have all come to that meeting, so none of them waits for this rank before it reads.
  const auto& [members, meeting] = brought_[std::size_t(slot)];
  const Deadline deadline = Deadline::after_seconds(60);
  for (int member = 0; member < members.count; ++member) {
    const Rank peer = members.rank_of(member);
    if (peer == rank()) continue;
    for (int round = 0; shared_->read_until(member_of(peer), slot).load_acquire() < meeting && !board().ended(peer);
         ++round) {
      if (passed(deadline))
        throw_error(ErrorCode::timeout, "rank {} has not read in 60 s what rank {} brought to meeting {} of a team: {}",
                    peer, rank(), meeting, board().line(peer));
      idle(round);
    }
  }
}

Index SharedFabric::available_bytes(Index granted_bytes) const {
  // The system grants memory of a process when it is touched: what is granted and not there yet is spoken for.
  return available_memory_bytes() - std::max<Index>(0, granted_bytes - resident_memory_bytes());
}

std::shared_ptr<void> SharedFabric::local_memory(std::size_t size_bytes) {
  constexpr std::size_t worth_asking = std::size_t(1) << 20;
  if (size_bytes >= worth_asking && Index(size_bytes) > available_memory_bytes()) return nullptr;
  void* memory = allocate_on_host(size_bytes);
  if (!memory) return nullptr;
  return {memory, free_on_host};
}

Result<std::shared_ptr<void>> SharedFabric::join(std::shared_ptr<void> block, std::size_t offset_bytes,
                                                 std::size_t size_bytes, void* memory) {
  if (Result<void> joined = shared_->join(member_, offset_bytes, size_bytes, memory); !joined) return joined.error();
  // Weak references keep this function: it lets go of what it holds when it is called.
  auto part = [block = std::move(block), shared = shared_, member = member_, offset_bytes,
               size_bytes](void* joined) mutable {
    // Pages that stay together are the program's: no other block may have them.
    if (!shared->part(member, offset_bytes, size_bytes, joined)) new std::shared_ptr<void>(block);
    block.reset();
    shared.reset();
  };
  return std::shared_ptr<void>(memory, std::move(part));
}

void SharedFabric::idle(int round) {
  // Yielding beats a futex by far when many ranks share a core and all soon go on. Sleep only when that has not helped
  // for long: then another rank computes, and yielding would take half its core.
  // Where hundreds of ranks share a core, one yield lets all of them look, and waking all of them every millisecond
  // takes more than the core has: naps are so long that looking costs a tenth of it.
  const int yields = std::clamp(6400 / ranks_per_core_, 10, 200);
  constexpr std::int64_t sleep_ns_min = 20'000, look_ns = 5'000;
  const std::int64_t sleep_ns_max = std::max<std::int64_t>(1'000'000, 10 * look_ns * ranks_per_core_);
  if (round < yields) return RealSync::yield();
  const int doublings = std::min((round - yields) / 4, 20);
  const std::int64_t nap_ns = std::min(sleep_ns_min << doublings, sleep_ns_max);
  const timespec nap = {nap_ns / 1'000'000'000, nap_ns % 1'000'000'000};
  nanosleep(&nap, nullptr);
}

}  // namespace tranship
