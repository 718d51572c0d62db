// Private: HostsMeeting, how the members of a team meet who are on several machines: those of each machine in the
// memory that they share, and then one of each machine, its leader, by messages.
#pragma once

#include <memory>
#include <vector>

#include <tranship/fabric/hosts/engine.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/shared/shared_meeting.hpp>

namespace tranship {

class HostsMeeting final : public Meeting {
 public:
  /// `host_of` says on which machine each rank of the job is. `local` is the meeting of the members of this one.
  HostsMeeting(HostsEngine& engine, const std::vector<int>& host_of, const Members& members, int slot,
               const Members& named, std::unique_ptr<SharedMeeting> local);

  void meet(World& world, const Call& call, CallSite where) override {
    gather(world, call, nullptr, 0, nullptr, where);
  }
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
              CallSite where) override;
  void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
              CallSite where) override;
  std::uint64_t calls() const noexcept override { return local_->calls(); }
  void begin_at(std::uint64_t calls) override;

 private:
  struct Statement;
  /// The members of one machine, by their numbers in the team, ascending. The first one leads.
  using Host = std::vector<int>;
  const Host& here() const noexcept { return hosts_[my_host_]; }

  /// What all members state; throws `mismatch` on all of them where their calls differ. `data` goes with it where it is
  /// little.
  std::vector<Statement> stated(World& world, const Call& call, const void* data, std::size_t size_bytes,
                                CallSite where);
  const Host& host_of(int member) const;
  bool leads() const noexcept { return here().front() == me_; }
  /// What the leader of a machine has brought to the exchange under way.
  std::vector<std::byte> taken(World& world, const Call& call, const Host& host, CallSite where);
  /// Every member brings so many bytes to all, whatever its call is.
  void exchange(World& world, const Call& call, const void* mine, std::size_t size_bytes, std::byte* all,
                CallSite where);
  [[noreturn]] void disagree(World& world, const std::vector<Statement>& statements, int other, CallSite where);

  HostsEngine& engine_;
  Members members_;
  Members named_;
  int slot_;
  int me_;
  std::vector<Host> hosts_;  // by their first members
  std::size_t my_host_ = 0;
  std::unique_ptr<SharedMeeting> local_;
  std::uint64_t number_ = 0;  // of the last exchange
  std::uint64_t calls_ = 0;
};

}  // namespace tranship
