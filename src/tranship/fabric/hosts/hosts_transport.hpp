// Private: HostsTransport, the transfers of one context to ranks of other machines.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/hosts/engine.hpp>
#include <tranship/fabric/seam/transport.hpp>

namespace tranship {

class World;

class HostsTransport final : public Transport {
 public:
  HostsTransport(HostsEngine& engine, World& world) : engine_(engine), world_(world) {}

  void put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
           Completion completion, CallSite where) override;
  Departure put_departing(Remote target, std::span<const std::byte> source, const std::shared_ptr<const void>& owner,
                          const Signal& signal, CallSite where) override;
  void get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
           CallSite where) override;
  void atomic(Remote at, int width, WordKind kind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
              void* before, Completion completion, CallSite where) override;
  /// Messages to one rank are carried out in their order, but that long ones may come while those before do.
  void fence(std::optional<Rank> peer, CallSite) override {
    for (const Rank written : written_)
      if (!peer || written == *peer) engine_.order(written);
  }
  void quiet(std::optional<Rank> peer, CallSite where) override;
  void seen(const void*, std::size_t) override {}
  void touches(const void*, std::size_t, Touch, const char*, CallSite) override {}
  void poll(std::int64_t) override { engine_.progress(); }
  void abandon() noexcept override;
  std::string_view progress() const noexcept override {
    return engine_.has_thread() ? "a thread of each rank answers the other machines while it computes"
                                : "ranks answer the other machines in calls and waits of their own alone";
  }

 private:
  using Answers = std::vector<std::shared_ptr<Awaited>>;
  /// Returns the data that has not left, or nullptr.
  std::shared_ptr<Wire::Lent> start_put(Remote target, const CopyBlock& block, int width, const void* source,
                                        const Signal* signal, const std::shared_ptr<const void>& owner, CallSite where);
  void wait_for(const char* label, const Answers& answers, CallSite where);
  /// Moves what can be moved meanwhile.
  void wait_until(FunctionRef<bool()> is_so, const WaitNote& note);
  /// Until no more waits for `peer` than should.
  void wait_for_room(Rank peer, CallSite where);

  HostsEngine& engine_;
  World& world_;
  std::set<Rank> written_;           // peers that have been sent something since the last quiet
  std::map<Rank, Answers> answers_;  // of transfers that a quiet completes
  /// Sources of puts that have not left.
  std::map<Rank, std::vector<std::shared_ptr<Wire::Lent>>> lent_;
};

}  // namespace tranship
