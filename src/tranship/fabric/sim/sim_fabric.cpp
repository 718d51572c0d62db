#include "tranship/fabric/sim/sim_fabric.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <tranship/fabric/hosts/hosts_meeting.hpp>
#include <tranship/fabric/shared/shared_domain.hpp>
#include <tranship/fabric/sim/sim_transport.hpp>

namespace tranship {

namespace {

/// A meeting after which all members know everything that any of them knew before.
class SimMeeting final : public Meeting {
 public:
  SimMeeting(Simulation& simulation, Rank rank, const Members& members, int slot, std::unique_ptr<Meeting> inner)
      : simulation_(simulation), rank_(rank), members_(members), slot_(slot), inner_(std::move(inner)) {}

  void meet(World& world, const Call& call, CallSite where) override {
    learning([&] { inner_->meet(world, call, where); });
  }
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
              CallSite where) override {
    learning([&] { inner_->gather(world, call, mine, size_bytes, all, where); });
  }
  void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
              CallSite where) override {
    learning([&] { inner_->spread(world, call, data, size_bytes, from_member, where); });
  }
  void reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
              CallSite where) override {
    learning([&] { inner_->reduce(world, call, record, size_bytes, combine, where); });
  }
  std::uint64_t calls() const noexcept override { return inner_->calls(); }
  void begin_at(std::uint64_t calls) override { inner_->begin_at(calls); }

 private:
  template <class F>
  void learning(F&& meet_all) {
    const detail::UnloggedCall call;
    const std::uint64_t meeting = calls();
    simulation_.come(rank_, slot_, members_, meeting);
    meet_all();
    simulation_.go(rank_, slot_, members_, meeting);
  }

  Simulation& simulation_;
  Rank rank_;
  Members members_;
  int slot_;
  std::unique_ptr<Meeting> inner_;
};

/// Passes on what ranks learn by words. It may outlive the simulation.
class SimFlagWatch final : public FlagWatch {
 public:
  SimFlagWatch(std::shared_ptr<RaceDetector> detector, Rank rank, const SharedWorld& shared)
      : race_detector_(std::move(detector)),
        rank_(rank),
        heaps_(shared.heap_of(0)),
        stride_bytes_(shared.stride_bytes()) {}

  void loaded(const void* word) override {
    detail::settle_accesses();
    race_detector_->acquire(rank_, bytes_of(word));
  }
  void stored(const void* word) override { release(word, RaceDetector::Release::replaces); }
  void updated(const void* word) override { release(word, RaceDetector::Release::joins); }

 private:
  RaceDetector::Bytes bytes_of(const void* word) const {
    const auto offset = std::size_t(static_cast<const std::byte*>(word) - heaps_);
    const std::size_t first = offset % stride_bytes_;
    return {Rank(offset / stride_bytes_), first, first + sizeof(std::uint64_t)};
  }
  void release(const void* word, RaceDetector::Release how) {
    detail::settle_accesses();
    race_detector_->release(bytes_of(word), race_detector_->told_by(rank_), how);
  }

  std::shared_ptr<RaceDetector> race_detector_;
  Rank rank_;
  const std::byte* heaps_;
  std::size_t stride_bytes_;
};

class SimClock final : public Clock {
 public:
  SimClock(Simulation& simulation, Rank rank) : Clock({.polls_per_look = 8}), simulation_(simulation), rank_(rank) {}

  void idle(int round) override { simulation_.wait(rank_, round); }
  bool passed(Deadline deadline) override { return simulation_.passed(rank_, deadline); }

 private:
  Simulation& simulation_;
  Rank rank_;
};

class SimDomain final : public SharedDomain {
 public:
  SimDomain(Simulation& simulation, const std::shared_ptr<SharedWorld>& shared, Rank rank)
      : SharedDomain(shared, rank, shared->shape().ranks, {.count = shared->shape().ranks}),
        simulation_(simulation),
        rank_(rank) {}

  HeapPlace heap() const override {
    HeapPlace place = SharedDomain::heap();
    place.direct = {};
    if (!simulation_.host_memory()) return place;
    std::vector<HeapAddresses::Address> heaps(static_cast<std::size_t>(here().count));
    const Members direct = simulation_.sharing(rank_);
    for (int member = 0; member < direct.count; ++member)
      heaps[static_cast<std::size_t>(direct.rank_of(member))] = place.mapped.data()[direct.rank_of(member)];
    place.direct = HeapAddresses(std::move(heaps));
    return place;
  }
  Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) override {
    if (RaceDetector* detector = simulation_.race_detector())
      detector->forget({rank_, offset_bytes, offset_bytes + size_bytes});
    return SharedDomain::obtain(offset_bytes, size_bytes);
  }
  Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes, std::size_t size_bytes,
                                     void* memory) override {
    auto joined = SharedDomain::join(std::move(block), offset_bytes, size_bytes, memory);
    if (!joined.ok()) return joined;
    const RaceDetector::Bytes bytes{rank_, offset_bytes, offset_bytes + size_bytes};
    if (RaceDetector* detector = simulation_.race_detector()) detector->forget(bytes);
    // After the release, no peer may touch the memory.
    const auto release = [held = joined.value(), weak = std::weak_ptr(simulation_.shared_race_detector()), rank = rank_,
                          bytes](void*) mutable {
      held.reset();
      if (const auto detector = weak.lock())
        detector->note_late(
            rank, {{RaceDetector::What::free, "the release of registered memory", {"outside any call", 0}}, {bytes}});
    };
    std::shared_ptr<void> whole(joined.value().get(), release);
    simulation_.join(rank_, whole, size_bytes, offset_bytes);
    return whole;
  }
  std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content) override {
    HostMemory* memory = simulation_.host_memory();
    if (!memory) return SharedDomain::local_memory(size_bytes, content);
    auto out = memory->allocate(rank_ / simulation_.options().ranks_per_host, size_bytes);
    if (out && content == MemoryContent::zeros) std::memset(out.get(), 0, size_bytes);
    return out;
  }

 private:
  Simulation& simulation_;
  Rank rank_;
};

}  // namespace

SimFabric::SimFabric(Simulation& simulation, const std::shared_ptr<SharedWorld>& shared, Rank rank)
    : SharedFabric(shared, rank, simulation.board_of(rank), {.count = shared->shape().ranks},
                   std::make_shared<SimDomain>(simulation, shared, rank), std::make_shared<SimClock>(simulation, rank)),
      simulation_(simulation),
      mail_(*this) {}

Members SimFabric::sharing() const {
  return simulation_.sharing(rank());
}

std::unique_ptr<Meeting> SimFabric::meeting(const Members& members, int slot, const Members& named) {
  std::unique_ptr<Meeting> inner;
  if (sharing().count == size()) {
    inner = SharedFabric::meeting(members, slot, named);
  } else {
    const std::vector<int>& host_of = simulation_.sharing_of();
    const MembersHere here = members_here(host_of, rank(), members, named);
    inner = std::make_unique<HostsMeeting>(mail_, host_of, rank(), members, slot, named,
                                           shared_meeting(here.members, slot, here.named));
  }
  return std::make_unique<SimMeeting>(simulation_, rank(), members, slot, std::move(inner));
}

std::shared_ptr<FlagWatch> SimFabric::flag_watch() {
  if (!simulation_.race_detector()) return nullptr;
  return std::make_shared<SimFlagWatch>(simulation_.shared_race_detector(), rank(), shared());
}

std::unique_ptr<Transport> SimFabric::transport(World&) {
  return std::make_unique<SimTransport>(simulation_, rank());
}

}  // namespace tranship
