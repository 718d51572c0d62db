// Private: the set-up of posted messages: their symmetric memory, and where each lies at its peer.
#pragma once

#include <vector>

#include <tranship/run/exchange_agreement.hpp>
#include <tranship/run/exchange_messages.hpp>

namespace tranship {

/// The lines of this rank's inbox.
Index posted_lines(const ExchangeMessages& messages);
/// Collective, where any rank posts: allocates inboxes, signals and lists, and fills this rank's lists.
void make_posts(const std::vector<Vote>& votes, ExchangeMessages& messages, CallSite where);
/// Finds every posted message in the list of its peer. Not collective. Throws `mismatch` where their sizes differ.
void open_posts(ExchangeMessages& messages);

}  // namespace tranship
