#include "tranship/fabric/sub_fabric.hpp"

#include <optional>

namespace tranship {
namespace {

class SubTransport final : public Transport {
 public:
  SubTransport(std::unique_ptr<Transport> whole, const Members& members, std::size_t offset_bytes)
      : whole_(std::move(whole)), members_(members), offset_bytes_(offset_bytes) {}

  void put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
           Completion completion, CallSite where) override {
    const Signal there = signal ? in_whole(*signal) : Signal{};
    whole_->put(in_whole(target), block, width, source, signal ? &there : nullptr, completion, where);
  }
  Departure put_departing(Remote target, std::span<const std::byte> source, const std::shared_ptr<const void>& owner,
                          const Signal& signal, CallSite where) override {
    return whole_->put_departing(in_whole(target), source, owner, in_whole(signal), where);
  }
  void get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
           CallSite where) override {
    whole_->get(target, block, width, in_whole(source), completion, where);
  }
  void atomic(Remote at, int width, WordKind kind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
              void* before, Completion completion, CallSite where) override {
    whole_->atomic(in_whole(at), width, kind, op, operand, compare, before, completion, where);
  }
  void fence(std::optional<Rank> peer, CallSite where) override { whole_->fence(in_whole(peer), where); }
  void quiet(std::optional<Rank> peer, CallSite where) override { whole_->quiet(in_whole(peer), where); }
  void seen(const void* first, std::size_t size_bytes) override { whole_->seen(first, size_bytes); }
  void touches(const void* first, std::size_t size_bytes, Touch touch, const char* name, CallSite where) override {
    whole_->touches(first, size_bytes, touch, name, where);
  }
  bool watches_uses() const noexcept override { return whole_->watches_uses(); }
  std::uint64_t begin_use(std::span<const Use> uses, const char* name, const char* completion,
                          CallSite where) override {
    return whole_->begin_use(uses, name, completion, where);
  }
  void end_use(std::uint64_t number) noexcept override { whole_->end_use(number); }
  void enter_library() noexcept override { whole_->enter_library(); }
  void leave_library() noexcept override { whole_->leave_library(); }
  bool set_covered(bool is) noexcept override { return whole_->set_covered(is); }
  void poll(std::int64_t polls) override { whole_->poll(polls); }
  void abandon() noexcept override { whole_->abandon(); }

 private:
  std::optional<Rank> in_whole(std::optional<Rank> peer) const noexcept {
    return peer ? std::optional(members_.rank_of(*peer)) : std::nullopt;
  }
  Remote in_whole(Remote at) const noexcept {
    return {.peer = members_.rank_of(at.peer), .offset_bytes = at.offset_bytes + offset_bytes_};
  }
  Signal in_whole(Signal signal) const noexcept {
    signal.offset_bytes += offset_bytes_;
    return signal;
  }

  std::unique_ptr<Transport> whole_;
  Members members_;
  std::size_t offset_bytes_;
};

/// The domain of a sub-world: a part of the heap of the world around it.
class SubDomain final : public Domain {
 public:
  SubDomain(Domain& whole, int ranks_here, const SymmetricHeap& around, const Members& members,
            SymmetricHeap::Lent lent)
      : whole_(whole), ranks_here_(ranks_here), around_(around), members_(members), lent_(std::move(lent)) {}

  HeapPlace heap() const override {
    HeapPlace place = whole_.heap();
    place.own += lent_.offset_bytes;
    place.size_bytes = lent_.size_bytes;
    place.mapped = place.mapped.of_members(members_, lent_.offset_bytes);
    place.direct = place.direct.of_members(members_, lent_.offset_bytes);
    place.is_zeroed = false;  // another sub-world may have had it
    return place;
  }
  Index available_bytes(Index granted_bytes) const override {
    return whole_.available_bytes(granted_bytes + Index(around_.granted_bytes()) * ranks_here_);
  }
  Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) override {
    return whole_.obtain(lent_.offset_bytes + offset_bytes, size_bytes);
  }
  void give_back(std::size_t offset_bytes, std::size_t size_bytes) noexcept override {
    whole_.give_back(lent_.offset_bytes + offset_bytes, size_bytes);
  }
  Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes, std::size_t size_bytes,
                                     void* memory) override {
    return whole_.join(std::move(block), lent_.offset_bytes + offset_bytes, size_bytes, memory);
  }
  std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content) override {
    return whole_.local_memory(size_bytes, content);
  }
  std::shared_ptr<void> lifetime() const override {
    // A pair destroys its second member first, so the lent part is released before the heap.
    return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(whole_.lifetime(), lent_.hold);
  }

 private:
  Domain& whole_;
  int ranks_here_;  // of this machine
  const SymmetricHeap& around_;
  Members members_;
  SymmetricHeap::Lent lent_;
};

/// Returns the clock of the world around, which outlives the sub-world.
std::shared_ptr<Clock> clock_of(Fabric& whole) {
  return {std::shared_ptr<void>(), &whole.clock()};
}

}  // namespace

SubFabric::SubFabric(std::unique_ptr<Board> board, Fabric& whole, const SymmetricHeap& around, const Members& members,
                     int slot, const SymmetricHeap::Lent& lent)
    : Fabric(members.member_of(whole.rank()), *board,
             std::make_shared<SubDomain>(whole.domain(), whole.on_this_machine().count, around, members, lent),
             clock_of(whole)),
      board_(std::move(board)),
      whole_(whole),
      members_(members),
      slot_(slot),
      offset_bytes_(lent.offset_bytes) {}

std::unique_ptr<Transport> SubFabric::transport(World& world) {
  std::unique_ptr<Transport> whole = whole_.transport(world);
  return whole ? std::make_unique<SubTransport>(std::move(whole), members_, offset_bytes_) : nullptr;
}

}  // namespace tranship
