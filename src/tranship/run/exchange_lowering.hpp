// Private: lowering an exchange: which messages are staged, and the moves of each, bound to memory. Both ends of a
// message see the same runs and decide alike. Not collective.
#pragma once

#include <tranship/run/exchange_messages.hpp>

namespace tranship {

/// Lowers all moves and chooses how each message travels. Binds direct messages and the moves that this rank makes
/// alone; staged messages are bound once their buffers are known. Peers' cards must be there.
void lower_messages(const ExchangeTerms& terms, ExchangeMessages& messages);
/// Binds the moves that this rank makes alone to its arrays.
void bind_own_moves(const ExchangeTerms& terms, ExchangeMessages& messages);
/// Binds staged messages to their buffers.
void bind_staged_messages(const ExchangeTerms& terms, ExchangeMessages& messages);
/// Gives the messages that are posted, or all others, their protocols. From here on a rank that leaves says so to its
/// peers.
enum class Travel : bool { in_reach, posted };
void choose_protocols(ExchangeMessages& messages, Travel travel);

}  // namespace tranship
