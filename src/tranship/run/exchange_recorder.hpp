// Private: ExchangeRecorder observes one run of an exchange for the log of exchanges.
#pragma once

#include <optional>
#include <vector>

#include <tranship/run/exchange_log.hpp>
#include <tranship/run/exchange_messages.hpp>
#include <tranship/run/exchange_observer.hpp>

namespace tranship {

class ExchangeRecorder final : public ExchangeObserver {
 public:
  /// Make it when the run starts.
  ExchangeRecorder(const ExchangeTerms& terms, const ExchangeMessages& messages, std::uint64_t epoch);

  void started(CallSite where) override;
  void finishing() override;
  void message_complete(const Message& message) override;
  void completed(CallSite where) override;
  void failed(CallSite where, const std::string& why) override;
  void withdrawn() noexcept override;

 private:
  void end(CallSite where, std::string failure);

  const ExchangeTerms& terms_;
  const ExchangeMessages& messages_;
  LoggedExchange record_;
};

}  // namespace tranship
