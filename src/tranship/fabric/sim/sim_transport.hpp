// Private: SimTransport: cuts the transfers of one context of a simulated rank into pieces and puts them into the log
// of the simulation.
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
      : simulation_(simulation),
        rank_(rank),
        of_program_{simulation.next_context()},
        of_library_{simulation.next_context()} {}
  SimTransport(const SimTransport&) = delete;
  SimTransport& operator=(const SimTransport&) = delete;

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
  void enter_library() noexcept override;
  void leave_library() noexcept override;
  bool set_covered(bool is) noexcept override { return simulation_.set_covered(rank_, is); }
  void abandon() noexcept override;

 private:
  /// Returns nullptr if order is not checked, and while a use covers the rank's accesses.
  RaceDetector* detector() const noexcept { return simulation_.race_detector_for(rank_); }
  /// Records an update, or a transfer that only reads. Returns the knowledge of those who see that it is over; nullptr
  /// if order is not checked.
  std::shared_ptr<Told> note(Rank target, RaceDetector::Fencing fencing, const RaceDetector::Accesses& remote,
                             const RaceDetector::Accesses* local);
  /// Counts a message that the peer acknowledges at the next quiet.
  void sends(Rank peer, std::size_t bytes);
  InFlight made(InFlight::Kind kind, Rank target, int width) const;
  FencedWay way(Rank target) const { return {order_->context, target, fences_to(target)}; }
  std::uint64_t fences_to(Rank target) const;

  /// State of the fences and quiets of one author, the program or the library.
  struct Order {
    int context;
    std::uint64_t fences = 0;  ///< to all peers
    std::map<Rank, std::uint64_t> fences_to = {};
    std::set<Rank> unanswered = {};
    bool is_awaited = false;  ///< a value arrives by the next quiet
  };

  void complete(Order& order, std::optional<Rank> peer, CallSite where);

  Simulation& simulation_;
  Rank rank_;
  Order of_program_, of_library_;
  Order* order_ = &of_program_;
  int in_library_ = 0;
};

}  // namespace tranship
