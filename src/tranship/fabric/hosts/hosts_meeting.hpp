// Private: HostsMeeting, how the members of a team meet who are on several machines: those of each machine in the
// memory that they share, and one of each machine, its leader, by letters.
//
// Leaders are numbered, and each sends letters only to those that lie a power of two ahead or behind: it sends as many
// as the logarithm of how many there are, or one or two more, and knows as many others. Reductions double the part that
// a leader knows of; what one of them has goes down a tree; and what all have goes round in steps that double
// (J. Bruck et al., Efficient algorithms for all-to-all communications, 1997).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <tranship/fabric/hosts/mail.hpp>
#include <tranship/fabric/seam/meeting.hpp>
#include <tranship/fabric/seam/members.hpp>
#include <tranship/fabric/shared/shared_meeting.hpp>

namespace tranship {

/// The members of a team that are on the machine of a rank, in their order, and what they are called.
struct MembersHere {
  Members members, named;
};
MembersHere members_here(const std::vector<int>& host_of, Rank rank, const Members& members, const Members& named);

class HostsMeeting final : public Meeting {
 public:
  /// `host_of` says on which machine each rank of the job is; it and the mail outlive this object. `local` is the
  /// meeting of the members that are on the machine of `rank`, in their order.
  HostsMeeting(Mail& mail, const std::vector<int>& host_of, Rank rank, const Members& members, int slot,
               const Members& named, std::unique_ptr<SharedMeeting> local);

  void meet(World& world, const Call& call, CallSite where) override {
    reduce(
        world, call, nullptr, 0, [](void*, const void*) {}, where);
  }
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
              CallSite where) override;
  void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
              CallSite where) override;
  void reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
              CallSite where) override;
  std::uint64_t calls() const noexcept override { return local_->calls(); }
  void begin_at(std::uint64_t calls) override;

 private:
  struct Stated;
  /// By the numbers of their machines, in the order of their first members.
  using MembersByHost = std::vector<std::vector<int>>;
  MembersByHost members_by_host() const;

  bool leads() const noexcept { return leads_; }
  /// Returns what a leader has brought to the exchange under way.
  std::vector<std::byte> taken(World& world, const Call& call, int leader, CallSite where);
  void bring(int leader, std::span<const std::byte> bytes);
  // By leaders alone, in an exchange that all leaders make.
  void combine_records(World& world, const Call& call, std::span<std::byte> record, Combine combine, CallSite where);
  void send_down(World& world, const Call& call, std::span<std::byte> data, int from_host, CallSite where);
  /// Every member brings `size_bytes` bytes to all, whatever its call is.
  void exchange(World& world, const Call& call, const void* mine, std::size_t size_bytes, std::byte* all,
                CallSite where);
  /// Throws `mismatch` where all members have found that their calls differ.
  [[noreturn]] void disagree(World& world, const Call& call, CallSite where);

  Mail& mail_;
  const std::vector<int>& host_of_;
  Members members_;
  Members named_;
  int slot_;
  int me_;
  int hosts_ = 0;
  int my_host_ = 0;
  int here_count_ = 0;
  bool leads_ = false;
  /// The leaders of machines my_host_ + 2^k and my_host_ - 2^k, modulo their number, for 2^k less than that.
  std::vector<int> ahead_, behind_;
  std::unique_ptr<SharedMeeting> local_;
  std::uint64_t number_ = 0;  // of the last exchange
  std::uint64_t calls_ = 0;
};

}  // namespace tranship
