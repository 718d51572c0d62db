#include <algorithm>

#include <time.h>

#include <tranship/fabric/shared/shared_fabric.hpp>
#include <tranship/fabric/shared/shared_meeting.hpp>
#include <tranship/memory/host_device.hpp>

namespace tranship {

SharedFabric::SharedFabric(std::shared_ptr<SharedWorld> shared, Rank rank)
    : Fabric(rank, shared->shape().ranks, shared->board()),
      shared_(std::move(shared)),
      // A rank that has its core to itself may spin for longer than a large message takes. With more ranks than cores,
      // whoever spins keeps the one it waits for from running.
      has_cores_(size() <= shared_->shape().cores) {}

std::unique_ptr<Meeting> SharedFabric::meeting(const Members& members, int slot) {
  return std::make_unique<SharedMeeting>(*shared_, rank(), members, slot);
}

std::shared_ptr<void> SharedFabric::local_memory(std::size_t size_bytes) {
  void* memory = allocate_on_host(size_bytes);
  if (!memory) return nullptr;
  return {memory, free_on_host};
}

Result<std::shared_ptr<void>> SharedFabric::join(std::shared_ptr<void> block, std::size_t offset_bytes,
                                                 std::size_t size_bytes, void* memory) {
  if (Result<void> joined = shared_->join(rank(), offset_bytes, size_bytes, memory); !joined) return joined.error();
  const auto part = [block, shared = shared_, rank = rank(), offset_bytes, size_bytes](void* joined) {
    // Pages that stay together are the program's: nobody else may have them.
    if (!shared->part(rank, offset_bytes, size_bytes, joined)) new std::shared_ptr<void>(block);
  };
  return std::shared_ptr<void>(memory, part);
}

void SharedFabric::idle(int round) {
  // Yielding beats a futex by far when many ranks share a core and all soon go on. Sleep only when that has not helped
  // for long: then somebody computes, and yielding would take half his core.
  constexpr int yields = 200;
  constexpr std::int64_t sleep_ns_min = 20'000, sleep_ns_max = 1'000'000;
  if (round < yields) return RealSync::yield();
  const int doublings = std::min((round - yields) / 4, 6);
  const timespec nap = {0, static_cast<long>(std::min(sleep_ns_min << doublings, sleep_ns_max))};
  nanosleep(&nap, nullptr);
}

}  // namespace tranship
