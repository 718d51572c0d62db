#include "tranship/fabric/shared/shared_meeting.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {
namespace {

/// Up to this size, reading a record takes less time than a second meeting.
constexpr int one_meeting_max = 256;

/// Returns the members of a SharedWorld that are these ranks, all of which are among `here`.
Members members_among(const Members& here, const Members& ranks) {
  if (here.first == 0 && here.stride == 1 && !here.listed) return ranks;
  std::vector<Rank> out;
  for (int i = 0; i < ranks.count; ++i) out.push_back(here.member_of(ranks.rank_of(i)));
  return Members::of(out);
}

}  // namespace

SharedMeeting::SharedMeeting(SharedWorld& shared, Board& board, const Members& here, Rank rank, const Members& members,
                             int slot, const Members& named, Brought& brought)
    : shared_(shared),
      board_(board),
      ranks_(members),
      members_(members_among(here, members)),
      named_(named),
      slot_(slot),
      me_(members.member_of(rank)),
      brought_(brought),
      barrier_(&shared.arrivals(members_.listed ? 0 : members_.first, slot), members_.count, me_,
               SharedWorld::arrivals_stride * (members_.listed ? 1 : members_.stride), members_.list()) {
  barrier_.begin_at(shared.arrivals(members_.rank_of(me_), slot).load_relaxed() >> 16);
}

void SharedMeeting::begin_at(std::uint64_t calls) {
  barrier_.begin_at(calls);
  shared_.arrivals(members_.rank_of(me_), slot_).store_release(calls << 16);
  shared_.read_until(members_.rank_of(me_), slot_).store_release(calls);
}

MeetingPlace& SharedMeeting::place(int member) const noexcept {
  return shared_.meeting_place(members_.rank_of(member), slot_);
}
MeetingPlace::Offer& SharedMeeting::offer(int member) const noexcept {
  return place(member).offers[barrier_.epoch() % 2];
}
MeetingPlace::Offer& SharedMeeting::next_offer() const noexcept {
  return place(me_).offers[(barrier_.epoch() + 1) % 2];
}

void SharedMeeting::meet(World& world, const Call& call, PartOf whole, CallSite where) {
  const Rank rank = ranks_.rank_of(me_);
  board_.post_call(rank, call.kind, whole.value_or(barrier_.epoch() + 1));
  next_offer().call = call;
  barrier_.arrive(whole ? 0 : fingerprint_of(call));
  bool passed = barrier_.passed();
  // A tight loop without pauses: a rank that runs on another core arrives within it.
  for (int round = world.spin_rounds(); !passed && round > 0; --round) passed = barrier_.passed();
  if (!passed) {
    WaitNote note(name_of(call.kind), WaitNote::anyone, where);
    note.flag_index = slot_;
    note.wanted = whole.value_or(barrier_.epoch());
    world.wait_until(
        [&] {
          if (barrier_.passed()) return true;
          note.raised_by = note.flag_rank = named_.rank_of(barrier_.missing());
          note.seen = whole ? *whole - 1 : barrier_.arrivals_of(barrier_.missing());
          return false;
        },
        note);
  }
  if (barrier_.differs()) disagree(world, call, where);
  board_.post_return(rank);
}

void SharedMeeting::gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
                           PartOf whole, CallSite where) {
  std::size_t done = 0;
  do {  // one offer at a time; without bytes, only the meeting
    const std::size_t some = std::min(size_bytes - done, MeetingPlace::offer_bytes);
    if (some > 0) std::memcpy(next_offer().bytes, static_cast<const std::byte*>(mine) + done, some);
    meet(world, call, whole, where);
    brought_ = {.members = ranks_, .meeting = barrier_.epoch()};
    for (int member = 0; member < members_.count; ++member)
      read(world, call, member, static_cast<std::byte*>(all) + static_cast<std::size_t>(member) * size_bytes + done,
           some, whole, where);
    shared_.read_until(members_.rank_of(me_), slot_).store_release(barrier_.epoch());
    done += some;
  } while (done < size_bytes);
}

void SharedMeeting::spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
                           PartOf whole, CallSite where) {
  const bool brings = me_ == from_member;
  std::size_t done = 0;
  do {
    const std::size_t some = std::min(size_bytes - done, MeetingPlace::offer_bytes);
    std::byte* const part = static_cast<std::byte*>(data) + done;
    if (brings && some > 0) std::memcpy(next_offer().bytes, part, some);
    meet(world, call, whole, where);
    if (brings)
      brought_ = {.members = ranks_, .meeting = barrier_.epoch()};
    else
      read(world, call, from_member, part, some, whole, where);
    shared_.read_until(members_.rank_of(me_), slot_).store_release(barrier_.epoch());
    done += some;
  } while (done < size_bytes);
}

void SharedMeeting::reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
                           PartOf whole, CallSite where) {
  static_assert(record_bytes_max <= MeetingPlace::offer_bytes);
  TRANSHIP_ASSERT(size_bytes <= MeetingPlace::offer_bytes);
  const int count = members_.count;
  if (count <= one_meeting_max)
    return combine_records(world, call, record, size_bytes, combine, {.end = count}, whole, where);
  // The first member of every group reads its group, and all members read these first ones.
  int group = 1;
  while (group * group < count) ++group;
  const int end = me_ % group == 0 ? std::min(me_ + group, count) : me_;
  combine_records(world, call, record, size_bytes, combine, {.first = me_, .end = end}, whole, where);
  combine_records(world, call, record, size_bytes, combine, {.end = count, .step = group}, whole, where);
}

void SharedMeeting::combine_records(World& world, const Call& call, void* record, std::size_t size_bytes,
                                    Combine combine, const Range& range, PartOf whole, CallSite where) {
  if (size_bytes > 0) std::memcpy(next_offer().bytes, record, size_bytes);
  meet(world, call, whole, where);
  brought_ = {.members = ranks_, .meeting = barrier_.epoch()};
  // All begin with the first member, so all combine in the same order.
  for (int member = range.first; member < range.end; member += range.step) {
    alignas(std::max_align_t) std::byte theirs[MeetingPlace::offer_bytes];
    read(world, call, member, member == range.first ? record : theirs, size_bytes, whole, where);
    if (member != range.first) combine(record, theirs);
  }
  shared_.read_until(members_.rank_of(me_), slot_).store_release(barrier_.epoch());
}

void SharedMeeting::read(World& world, const Call& call, int member, void* to, std::size_t size_bytes, PartOf whole,
                         CallSite where) {
  const MeetingPlace::Offer& from = offer(member);
  if (!whole && !(from.call == call)) disagree(world, call, where);
  if (size_bytes > 0) std::memcpy(to, from.bytes, size_bytes);
  ++offers_read_;
}

void SharedMeeting::disagree(World& world, const Call& call, CallSite where) {
  const std::uint64_t meeting = barrier_.epoch();
  const auto state = [&](int member) -> MeetingPlace::Statement& { return place(member).statement; };
  MeetingPlace::Statement& mine = state(me_);
  const std::string text = fmt::format("{} ({})", to_string(call), short_name(where));
  std::memset(mine.text, 0, sizeof mine.text);
  std::memcpy(mine.text, text.data(), std::min(text.size(), sizeof mine.text - 1));
  mine.meeting.store_release(meeting);

  // All members have arrived, so all find the difference. One that dies first leaves its call, without the call site.
  const Deadline deadline = Deadline::after_ns(1'000'000'000);
  const auto said = [&](int member) { return state(member).meeting.load_acquire() == meeting; };
  for (int member = 0; member < members_.count; ++member)
    for (int round = 0; !said(member) && !deadline.passed() && !board_.ended(ranks_.rank_of(member)); ++round)
      world.idle(round);

  const auto words_of = [&](int member) {
    return said(member) ? std::string(state(member).text) : to_string(offer(member).call);
  };
  int other = 1;
  while (other < members_.count && offer(other).call == offer(0).call) ++other;
  Error error =
      make_error(ErrorCode::mismatch, "collective call {} differs: rank {} makes {}, rank {} {} (rank {})", meeting,
                 named_.rank_of(0), words_of(0), named_.rank_of(other), words_of(other), world.rank());
  error.rank = world.rank();
  error.peer = named_.rank_of(other);
  throw error;
}

}  // namespace tranship
