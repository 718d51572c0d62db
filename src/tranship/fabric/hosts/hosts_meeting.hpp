// Private: HostsMeeting, how the members of a team meet who are on several machines: those of each machine in the
// memory that they share, and then one of each machine, its leader, by messages.
#pragma once

#include <memory>
#include <optional>
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

  void meet(World& world, const Call& call, CallSite where) override;
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
              CallSite where) override;
  std::uint64_t calls() const noexcept override { return local_->calls(); }
  void begin_at(std::uint64_t calls) override;

 private:
  /// The members of one machine, by their numbers in the team, ascending.
  using Host = std::vector<int>;
  /// What a leader tells its members of what the other leaders have brought.
  struct Verdict {
    int code = 0;
    Rank peer = -1;
    char text[480] = {};
  };
  bool leads() const noexcept { return here().front() == me_; }
  const Host& here() const noexcept { return hosts_[my_host_]; }
  /// Each leader brings `bytes` for its machine; `take` gets those of the others.
  Verdict exchange(World& world, const Call& call, std::span<const std::byte> bytes,
                   FunctionRef<void(const Host&, std::span<const std::byte>)> take, CallSite where);
  std::optional<Verdict> verdict_on(const Call& mine, const Call& theirs, const Host& host) const;
  void bring_to_others(const Call& call, const Verdict& verdict, std::span<const std::byte> bytes);
  [[noreturn]] void throw_verdict(const World& world, const Verdict& verdict) const;

  HostsEngine& engine_;
  Members members_;
  Members named_;
  int slot_;
  int me_;
  std::vector<Host> hosts_;  // by their first members
  std::size_t my_host_ = 0;
  std::unique_ptr<SharedMeeting> local_;
  std::uint64_t number_ = 0;
};

}  // namespace tranship
