#include <algorithm>

#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/paired_copy.hpp>
#include <tranship/kernels/host_move.hpp>

namespace tranship {

PairedCopy::PairedCopy(World& world, CallSite where)
    : world_(world),
      slots_(world.allocate<Slot>(2 * world.size(), where)),
      states_(world.words(2 * world.size(), "paired copy", where)),
      epochs_(std::size_t(2 * world.size())) {}

void PairedCopy::copy_bytes(void* target, const void* source, std::size_t bytes, Rank from, Rank to, CallSite where) {
  const Rank me = world_.rank();
  Context& rma = world_.context();
  if (me != from && me != to)
    throw_error(ErrorCode::invalid_use, "rank {} takes part in a copy from rank {} to rank {} ({})", me, from, to,
                short_name(where));
  const auto target_bytes = Symmetric<std::byte>::at(static_cast<std::byte*>(target), Index(bytes));
  const auto source_bytes = Symmetric<const std::byte>::at(static_cast<const std::byte*>(source), Index(bytes));
  if (from == to) {
    rma.put(target_bytes, source_bytes.span(), me, where);
    return rma.quiet(where);
  }

  const bool sends = me == from;
  const Rank peer = sends ? to : from;
  const Index here = slot(peer, !sends), there = slot(me, sends);
  const std::uint64_t epoch = ++epochs_[std::size_t(here)];
  const auto word = [&](Index which, auto Slot::*member) {
    return Symmetric<std::uint64_t>::at(&(slots_[which].*member), 1);
  };
  const auto offset = [&](const void* at) {
    return bytes == 0 ? 0 : reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(slots_.local());
  };
  const Offer mine{offset(target), offset(source), bytes};
  // Else the peer could see this one before the offer that it waits for has come.
  rma.fence(where);
  rma.put_signal(Symmetric<Offer>::at(&slots_[there].offers[epoch % 2], 1), std::span(&mine, 1),
                 word(there, &Slot::entered), epoch, SignalOp::set, peer, where);
  rma.signal_wait(word(here, &Slot::entered), Comparison::greater_equal, epoch, peer, where);
  if (const Offer& theirs = slots_[here].offers[epoch % 2]; !(theirs == mine))
    throw_error(ErrorCode::mismatch,
                "a copy from rank {} to rank {} of {} bytes, at {:+} and {:+} from each other's slots, and one of {}, "
                "at {:+} and {:+}: both must name the same (rank {}, {})",
                from, to, mine.bytes, Index(mine.source), Index(mine.target), theirs.bytes, Index(theirs.source),
                Index(theirs.target), me, short_name(where));

  if (world_.heap().place().direct && world_.peer_kind(peer) == PeerKind::reachable) {
    auto* const at_source = rma.peer_array(source_bytes, from, where).data();
    return share(rma.peer_array(target_bytes, to, where).data(), at_source, bytes, from, to, epoch, where);
  }
  if (sends)
    rma.put_signal(target_bytes, source_bytes.span(), word(there, &Slot::arrived), epoch, SignalOp::set, peer, where);
  else
    rma.signal_wait(word(here, &Slot::arrived), Comparison::greater_equal, epoch, peer, where);
}

void PairedCopy::share(std::byte* target, const std::byte* source, std::size_t bytes, Rank from, Rank to,
                       std::uint64_t epoch, CallSite where) {
  // Each rank begins with a half of its own, whose lines stay with its core, and then helps with the other one. Parts
  // take a thousand times as long as a claim, and let both end at nearly the same time.
  constexpr std::size_t part_bytes_min = std::size_t(128) << 10;
  const std::size_t middle = std::min(bytes, round_up(bytes / 2, page_bytes()));
  const std::size_t part = std::max(part_bytes_min, round_up(bytes / claim_parts_max, page_bytes()));
  const HostWay way = host_way(Index(bytes));
  struct Half {
    Claim<RealSync> claim;
    std::size_t first, end;
  };
  const auto half = [&](int which, std::size_t first, std::size_t end) {
    RealSync::Word& state = states_.at(to, 2 * from + which);
    const int parts = int(std::max<std::size_t>(1, round_up(end - first, part) / part));
    return Half{{state, state, state, parts}, first, end};  // that both have entered is known
  };
  Half halves[] = {half(0, 0, middle), half(1, middle, bytes)};
  const bool is_source = world_.rank() == from;
  for (Half* const mine : {&halves[!is_source], &halves[is_source]})
    for (int i; (i = mine->claim.try_claim(epoch)) >= 0;) {
      const std::size_t first = mine->first + std::size_t(i) * part;
      copy_row(target + first, source + first, Index(std::min(part, mine->end - first)), way);
      mine->claim.complete();
    }
  world_.wait_until([&] { return halves[0].claim.done(epoch) && halves[1].claim.done(epoch); },
                    WaitNote("the other half of a copy", is_source ? to : from, where));
}

}  // namespace tranship
