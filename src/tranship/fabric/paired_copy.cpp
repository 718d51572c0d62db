#include "tranship/fabric/paired_copy.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/kernels/host/host_move.hpp>

namespace tranship {

namespace {

/// One half of a copy that two ranks make together.
struct Half {
  Claim<RealSync> claim;
  std::size_t first, end;
};
Half half_of(RealSync::Word& state, std::size_t first, std::size_t end, std::size_t part_bytes) {
  const int parts = int(std::max<std::size_t>(1, round_up(end - first, part_bytes) / part_bytes));
  return {{state, state, state, parts}, first, end};  // both are known to have entered
}

}  // namespace

/// A copy that has begun. If it does not complete, it is the last one of its pair.
class PairedCopy::Attempt {
 public:
  Attempt(PairedCopy& copies, Rank peer) : copies_(copies), peer_(peer) {}
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() {
    if (is_over_) return;
    copies_.pairs_[std::size_t(peer_)].is_broken = true;
    World& world = copies_.world_;
    if (!world.context().reaches(peer_)) return;
    const Rank me = world.rank();
    for (const auto& [from, to] : {std::pair(me, peer_), std::pair(peer_, me)})
      for (const int which : {0, 1})
        half_of(copies_.states_.at(to, 2 * from + which), 0, 0, 1).claim.leave(Leaving::failing, [&] {
          return world.has_ended(peer_);
        });
  }
  void is_over() noexcept { is_over_ = true; }

 private:
  PairedCopy& copies_;
  const Rank peer_;
  bool is_over_ = false;
};

PairedCopy::PairedCopy(World& world, CallSite where)
    : world_(world),
      slots_(world.allocate<Slot>(world.size(), where)),
      states_(world.shared_flags(2 * world.size(), "paired copy", where)),
      pairs_(std::size_t(world.size())) {}

void PairedCopy::copy_bytes(void* target, const void* source, std::size_t bytes, Rank from, Rank to, CallSite where) {
  world_.check_process();
  const Rank me = world_.rank();
  Context& rma = world_.context();
  const Rank peer = me == from ? to : from;
  if ((me != from && me != to) || peer < 0 || peer >= world_.size())
    throw_error(ErrorCode::invalid_use,
                "rank {} of {} calls a copy from rank {} to rank {}: it must be one of these two ranks, and both must "
                "exist ({})",
                me, world_.size(), from, to, short_name(where));
  const auto target_bytes = Symmetric<std::byte>::at(static_cast<std::byte*>(target), Index(bytes));
  const auto source_bytes = Symmetric<const std::byte>::at(static_cast<const std::byte*>(source), Index(bytes));
  // Each rank checks both arrays before it tells its peer anything.
  rma.peer_array(target_bytes, me, where);
  rma.peer_array(source_bytes, me, where);
  if (from == to) {
    rma.put(target_bytes, source_bytes.span(), me, where);
    return rma.quiet(where);
  }
  Pair& pair = pairs_[std::size_t(peer)];
  if (pair.is_broken)
    throw_error(ErrorCode::invalid_use, "copy {} of ranks {} and {} has failed: this pair cannot copy again ({})",
                pair.epoch, me, peer, short_name(where));

  Attempt attempt(*this, peer);
  const std::uint64_t epoch = ++pair.epoch;
  const auto word = [&](Index which, auto Slot::*member) {
    return Symmetric<std::uint64_t>::at(&(slots_[which].*member), 1);
  };
  const auto offset = [&](const void* at) {
    return bytes == 0 ? 0 : static_cast<const std::byte*>(at) - reinterpret_cast<const std::byte*>(slots_.local());
  };
  const Offer mine{from, offset(target), offset(source), Index(bytes)};
  // Without a fence, the peer could see this signal before the offer of the previous copy that it waits for.
  rma.fence(where);
  rma.put_signal(Symmetric<Offer>::at(&slots_[me].offers[epoch % 2], 1), std::span(&mine, 1), word(me, &Slot::entered),
                 epoch, SignalOp::set, peer, where);
  rma.signal_wait(word(peer, &Slot::entered), Comparison::greater_equal, epoch, peer, where);
  if (const Offer& theirs = slots_[peer].offers[epoch % 2]; !(theirs == mine)) {
    attempt.is_over();
    throw_error(ErrorCode::mismatch,
                "ranks {} and {} pass different arguments to copy: {} from rank {} (source offset {:+}, target offset "
                "{:+}), and {} from rank {} (source offset {:+}, target offset {:+}) ({})",
                me, peer, amount(mine.bytes, "byte"), mine.from, mine.source, mine.target, amount(theirs.bytes, "byte"),
                theirs.from, theirs.source, theirs.target, short_name(where));
  }
  if (rma.reaches(peer)) {
    const std::byte* at_source = rma.peer_array(source_bytes, from, where).data();
    share(rma.peer_array(target_bytes, to, where).data(), at_source, bytes, from, to, epoch, where);
  } else if (me == from) {
    rma.put_signal(target_bytes, source_bytes.span(), word(me, &Slot::arrived), epoch, SignalOp::set, peer, where);
  } else {
    rma.signal_wait(word(peer, &Slot::arrived), Comparison::greater_equal, epoch, peer, where);
  }
  attempt.is_over();
}

void PairedCopy::share(std::byte* target, const std::byte* source, std::size_t bytes, Rank from, Rank to,
                       std::uint64_t epoch, CallSite where) {
  // Each rank begins with one half, whose cache lines stay with its core, and then helps with the other. A part takes a
  // thousand times as long as a claim, and both ranks end at nearly the same time.
  constexpr std::size_t part_bytes_min = std::size_t(128) << 10;
  const std::size_t middle = std::min(bytes, round_up(bytes / 2, page_bytes()));
  const std::size_t part = std::max(part_bytes_min, round_up(bytes / claim_parts_max, page_bytes()));
  const CopyMethod way = copy_method(Index(bytes));
  const auto half = [&](int which, std::size_t first, std::size_t end) {
    return half_of(states_.at(to, 2 * from + which), first, end, part);
  };
  Half halves[] = {half(0, 0, middle), half(1, middle, bytes)};
  const bool is_source = world_.rank() == from;
  for (Half* const mine : {&halves[!is_source], &halves[is_source]})
    for (int i; (i = mine->claim.try_claim(epoch)) >= 0;) {
      const std::size_t first = mine->first + std::size_t(i) * part;
      copy_row(target + first, source + first, Index(std::min(part, mine->end - first)), way);
      mine->claim.complete();
    }
  const Rank peer = is_source ? to : from;
  const auto is_done = [&] { return halves[0].claim.done(epoch) && halves[1].claim.done(epoch); };
  const auto is_left = [&] { return halves[0].claim.left_before(epoch) || halves[1].claim.left_before(epoch); };
  world_.wait_until([&] { return is_done() || is_left(); }, WaitNote("the other half of a copy", peer, where));
  if (is_done()) return;
  world_.check_failed();
  throw_error(ErrorCode::peer_lost, "rank {} has given up copy {} of ranks {} and {} (rank {}, {})", peer, epoch, from,
              to, world_.rank(), short_name(where));
}

}  // namespace tranship
