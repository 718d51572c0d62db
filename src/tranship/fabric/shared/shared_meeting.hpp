// Private: SharedMeeting: how the members of a team on one machine meet: a FlagBarrier over their arrivals, with the
// data in meeting places.
#pragma once

#include <optional>

#include <tranship/fabric/shared/shared_world.hpp>
#include <tranship/fabric/sync/barrier.hpp>

namespace tranship {

class SharedMeeting final : public Meeting {
 public:
  /// The last meeting of this rank in a slot to which it has brought data, which the members may still read.
  struct Brought {
    Members members{.count = 0};
    std::uint64_t meeting = 0;
  };

  /// Another team may have had the slot before; it must have read what this rank has `brought` there. `here` are the
  /// ranks of the SharedWorld, including `members`; the board has a slot for each of them.
  SharedMeeting(SharedWorld& shared, Board& board, const Members& here, Rank rank, const Members& members, int slot,
                const Members& named, Brought& brought);

  void meet(World& world, const Call& call, CallSite where) override { meet(world, call, {}, where); }
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
              CallSite where) override {
    gather(world, call, mine, size_bytes, all, {}, where);
  }
  void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
              CallSite where) override {
    spread(world, call, data, size_bytes, from_member, {}, where);
  }
  void reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
              CallSite where) override {
    reduce(world, call, record, size_bytes, combine, {}, where);
  }
  // Parts of meeting `number` with ranks of other machines. They do not detect calls that differ, and all members must
  // bring the same number of bytes.
  void gather_part(World& world, const Call& call, std::uint64_t number, const void* mine, std::size_t size_bytes,
                   void* all, CallSite where) {
    gather(world, call, mine, size_bytes, all, number, where);
  }
  void spread_part(World& world, const Call& call, std::uint64_t number, int from_member, void* data,
                   std::size_t size_bytes, CallSite where) {
    spread(world, call, data, size_bytes, from_member, number, where);
  }
  void reduce_part(World& world, const Call& call, std::uint64_t number, void* record, std::size_t size_bytes,
                   Combine combine, CallSite where) {
    reduce(world, call, record, size_bytes, combine, number, where);
  }
  void begin_at(std::uint64_t calls) override;
  std::uint64_t calls() const noexcept override { return barrier_.epoch(); }

  /// Returns how often this rank has read what a member brought.
  Index offers_read() const noexcept { return offers_read_; }

 private:
  MeetingPlace& place(int member) const noexcept;
  MeetingPlace::Offer& offer(int member) const noexcept;
  /// The offer for the next meeting.
  MeetingPlace::Offer& next_offer() const noexcept;
  /// The number of the meeting that this one is a part of; none if it stands alone.
  using PartOf = std::optional<std::uint64_t>;
  void meet(World& world, const Call& call, PartOf whole, CallSite where);
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all, PartOf whole,
              CallSite where);
  void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member, PartOf whole,
              CallSite where);
  void reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine, PartOf whole,
              CallSite where);
  /// Meets with a record of every member, and combines into `record` those of members first, first + step, ... before
  /// `end`; with an empty range, it only meets.
  struct Range {
    int first = 0;
    int end = 0;
    int step = 1;
  };
  void combine_records(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
                       const Range& range, PartOf whole, CallSite where);
  /// Reads `size_bytes` that a member has brought to this meeting.
  void read(World& world, const Call& call, int member, void* to, std::size_t size_bytes, PartOf whole, CallSite where);
  void disagree(World& world, const Call& call, CallSite where);

  SharedWorld& shared_;
  Board& board_;
  Members ranks_;    // ranks of the members, on the board
  Members members_;  // numbers of the members in the SharedWorld
  Members named_;    // their ranks in the world for which they meet
  int slot_;
  int me_;
  Brought& brought_;
  Index offers_read_ = 0;
  FlagBarrier<RealSync> barrier_;
};

}  // namespace tranship
