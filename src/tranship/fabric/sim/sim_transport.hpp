// Private: the transfers of one context of a simulated rank, cut in pieces and put into the log of the simulation.
#pragma once

#include <tranship/fabric/sim/simulation.hpp>
#include <tranship/fabric/transport.hpp>

namespace tranship {

class SimTransport final : public Transport {
 public:
  SimTransport(Simulation& simulation, Rank rank)
      : simulation_(simulation), rank_(rank), context_(simulation.next_context()) {}

  void put(Remote target, const CopyBlock& block, int width, const void* source, const Signal* signal,
           Completion completion, CallSite where) override;
  void get(void* target, const CopyBlock& block, int width, Remote source, Completion completion,
           CallSite where) override;
  void atomic(Remote at, int width, AtomicOp op, std::uint64_t operand, std::uint64_t compare, void* before,
              Completion completion, CallSite where) override;
  void fence(CallSite where) override;
  void quiet(CallSite where) override;
  void poll() override;
  void seen(std::size_t offset_bytes) override;
  void touches(std::size_t offset_bytes, std::size_t size_bytes, bool stores, CallSite where) override;
  void abandon() noexcept override;

 private:
  /// What whoever sees that the transfer is over will know; nullptr where order is not checked.
  std::shared_ptr<Order::Knowledge> note(Rank target, Order::What what, const char* name,
                                         const std::vector<Order::Bytes>& bytes, CallSite where);
  InFlight made(InFlight::Kind kind, Rank target, int width) const;

  Simulation& simulation_;
  Rank rank_;
  int context_;
  std::uint64_t fences_ = 0;
};

}  // namespace tranship
