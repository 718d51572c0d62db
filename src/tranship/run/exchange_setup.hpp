// Private: ExchangeSetup, the collective set-up of an exchange: the ranks agree, each finds its peers' arrays, words
// and buffers, and lowers its moves. Its result is the list of messages, which runs only read.
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

  /// Collective, once. A failure on one rank fails on all before any rank makes the next collective call.
  void run();
  /// Moves other arrays from here on. Not collective. Throws where Exchange::bind says, and then changes nothing.
  void bind(std::span<const StridedView> views);

  const ExchangeTerms& terms() const noexcept { return terms_; }
  const ExchangeMessages& messages() const noexcept { return messages_; }

 private:
  void check_terms() const;
  std::vector<Vote> agree(const Result<void>& so_far) const;
  void find_cards(const std::vector<Vote>& votes);
  void open_words(const std::vector<Vote>& votes);
  const Arrival* arrival_of(const Message& m, const std::vector<Vote>& votes) const;
  void open_inbox();
  void find_inboxes(const std::vector<Vote>& votes);

  ExchangeTerms terms_;
  ExchangeMessages messages_;
};

}  // namespace tranship
