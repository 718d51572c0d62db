// Private: ExchangeSetup, the collective set-up of an exchange. The ranks agree; each finds its peers' arrays, words
// and buffers, and lowers its moves. The result is the list of messages, which runs only read.
#pragma once

#include <span>

#include <tranship/base/result.hpp>
#include <tranship/run/exchange_agreement.hpp>
#include <tranship/run/exchange_messages.hpp>

namespace tranship {

class ExchangeSetup {
 public:
  ExchangeSetup(World& world, TransferPlan plan, ExchangeSlots slots, ExchangeOptions options, CallSite where);
  ExchangeSetup(const ExchangeSetup&) = delete;
  ExchangeSetup& operator=(const ExchangeSetup&) = delete;

  /// Collective; call once. A failure on one rank fails on all before any rank makes the next collective call.
  void run();
  /// Binds the exchange to other arrays. Not collective. Throws what Exchange::bind throws, and then changes nothing.
  void bind(std::span<const StridedView> views);

  const ExchangeTerms& terms() const noexcept { return terms_; }
  const ExchangeMessages& messages() const noexcept { return messages_; }

 private:
  void check_terms() const;
  /// This rank's contribution to the agreement, once its messages are listed.
  ExchangeTotals totals() const;
  void find_notices();
  void open_words();
  void open_inbox();
  void find_inboxes();

  ExchangeTerms terms_;
  ExchangeMessages messages_;
};

}  // namespace tranship
