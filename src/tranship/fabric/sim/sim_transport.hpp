// Private: the transfers of one context of a simulated rank, cut in pieces and put into the log of the simulation.
#pragma once

#include <map>
#include <optional>
#include <set>

#include <tranship/fabric/seam/transport.hpp>
#include <tranship/fabric/sim/simulation.hpp>

namespace tranship {

class SimTransport final : public Transport {
 public:
  SimTransport(Simulation& simulation, Rank rank)
      : simulation_(simulation), rank_(rank), context_(simulation.next_context()) {}

  void put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
           Completion completion, CallSite where) override;
  void get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
           CallSite where) override;
  void atomic(Remote at, int width, WordKind kind, AtomicOp op, std::uint64_t operand, std::uint64_t compare,
              void* before, Completion completion, CallSite where) override;
  void fence(std::optional<Rank> peer, CallSite where) override;
  void quiet(std::optional<Rank> peer, CallSite where) override;
  void poll(std::int64_t polls) override;
  void seen(const void* first, std::size_t size_bytes) override;
  void touches(const void* first, std::size_t size_bytes, Touch touch, const char* name, CallSite where) override;
  bool watches_uses() const noexcept override;
  std::uint64_t begin_use(std::span<const Use> uses, const char* name, const char* completion, CallSite where) override;
  void end_use(std::uint64_t number) noexcept override;
  void abandon() noexcept override;

 private:
  using Known = std::shared_ptr<RaceDetector::Knowledge>;
  /// An update, or what only reads: what those know who see that it is over; nullptr where order is not checked.
  Known note(Rank target, RaceDetector::Fencing fencing, const RaceDetector::Accesses& remote,
             const RaceDetector::Accesses* local);
  /// A message that the peer answers at the next quiet.
  void sends(Rank peer, std::size_t bytes);
  InFlight made(InFlight::Kind kind, Rank target, int width) const;
  RaceDetector::Channel channel(Rank target) const { return {context_, target, fences_to(target)}; }
  std::uint64_t fences_to(Rank target) const;

  Simulation& simulation_;
  Rank rank_;
  int context_;
  std::uint64_t fences_ = 0;  ///< of all peers
  std::map<Rank, std::uint64_t> fences_to_;
  std::set<Rank> unanswered_;
  bool is_awaited_ = false;  ///< a value, by the next quiet
};

}  // namespace tranship
