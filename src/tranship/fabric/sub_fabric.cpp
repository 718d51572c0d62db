#include "tranship/fabric/sub_fabric.hpp"

namespace tranship {
namespace {

class SubTransport final : public Transport {
 public:
  SubTransport(std::unique_ptr<Transport> whole, const Members& members, std::size_t offset_bytes)
      : whole_(std::move(whole)), members_(members), offset_bytes_(offset_bytes) {}

  void put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
           Completion completion, CallSite where) override {
    Signal there;
    if (signal) {
      there = *signal;
      there.offset_bytes += offset_bytes_;
    }
    whole_->put(in_whole(target), block, width, source, signal ? &there : nullptr, completion, where);
  }
  void get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
           CallSite where) override {
    whole_->get(target, block, width, in_whole(source), completion, where);
  }
  void atomic(Remote at, int width, WordKind kind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
              void* before, Completion completion, CallSite where) override {
    whole_->atomic(in_whole(at), width, kind, op, operand, compare, before, completion, where);
  }
  void fence(CallSite where) override { whole_->fence(where); }
  void quiet(CallSite where) override { whole_->quiet(where); }
  void seen(const void* first, std::size_t size_bytes) override { whole_->seen(first, size_bytes); }
  void touches(const void* first, std::size_t size_bytes, Touch touch, const char* name, CallSite where) override {
    whole_->touches(first, size_bytes, touch, name, where);
  }
  void poll(std::int64_t polls) override { whole_->poll(polls); }
  void abandon() noexcept override { whole_->abandon(); }

 private:
  Remote in_whole(Remote at) const noexcept {
    return {.peer = members_.rank_of(at.peer), .offset_bytes = at.offset_bytes + offset_bytes_};
  }

  std::unique_ptr<Transport> whole_;
  Members members_;
  std::size_t offset_bytes_;
};

}  // namespace

SubFabric::SubFabric(std::unique_ptr<Board> board, Fabric& whole, const SymmetricHeap& around, const Members& members,
                     int slot, SymmetricHeap::Lent lent)
    : Fabric(members.member_of(whole.rank()), members.count, *board),
      board_(std::move(board)),
      whole_(whole),
      around_(around),
      members_(members),
      slot_(slot),
      lent_(std::move(lent)) {}

HeapPlace SubFabric::heap() const {
  HeapPlace place = whole_.heap();
  place.own += lent_.offset_bytes;
  place.size_bytes = lent_.size_bytes;
  place.mapped = place.mapped.of_members(members_, lent_.offset_bytes);
  place.direct = place.direct.of_members(members_, lent_.offset_bytes);
  place.is_zeroed = false;  // another sub-world may have had it
  return place;
}

Index SubFabric::available_bytes(Index granted_bytes) const {
  const Index granted_around = Index(around_.granted_bytes()) * whole_.on_this_machine().count;
  return whole_.available_bytes(granted_bytes + granted_around);
}

std::shared_ptr<void> SubFabric::lifetime() const {
  // The heap before what is lent of it.
  return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(whole_.lifetime(), lent_.hold);
}

std::unique_ptr<Transport> SubFabric::transport(World& world) {
  std::unique_ptr<Transport> whole = whole_.transport(world);
  return whole ? std::make_unique<SubTransport>(std::move(whole), members_, lent_.offset_bytes) : nullptr;
}

}  // namespace tranship
