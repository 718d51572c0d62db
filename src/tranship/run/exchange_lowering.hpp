// Private: lowers an exchange: decides which messages are staged, and binds the moves of each to memory. Both ends of a
// message see the same runs and decide alike. Not collective.
#pragma once

#include <tranship/run/exchange_messages.hpp>

namespace tranship {

/// Lowers all moves and chooses how each message travels. Binds direct messages and the moves of this rank alone;
/// staged messages are bound when their buffers are known. Needs the peers' cards.
void lower_messages(const ExchangeTerms& terms, ExchangeMessages& messages);
/// Binds the moves that this rank makes alone to its arrays.
void bind_own_moves(const ExchangeTerms& terms, ExchangeMessages& messages);
/// Binds staged messages to their buffers.
void bind_staged_messages(const ExchangeTerms& terms, ExchangeMessages& messages);
/// Sets the protocols of the posted messages, or of all others. From then on a rank that leaves tells its peers.
enum class Travel : bool { in_reach, posted };
void choose_protocols(ExchangeMessages& messages, Travel travel);

}  // namespace tranship
