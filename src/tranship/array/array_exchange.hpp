// Detail: ArrayExchange, which Redistribution, HaloExchange and InterfaceExchange are: the calls of ExchangeCalls
// (run/exchange.hpp), on arrays.
#pragma once

#include <tranship/base/call_site.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

struct ArrayPlan;

/// Keeps the arrays that it moves, so their memory outlives it.
///
/// start() waits for no peer, with two exceptions: where leases have been opened on an array, it waits until the device
/// that holds boundary cells has copied them to the host; and where leases have accumulated in ghosts of a source, it
/// is collective, because the owners get these values first. start_may_wait() is false where no array has had a lease
/// until now; then start() allocates nothing. Until finish() returns, or test() returns true, the sources must not be
/// written and the targets not be touched, unless the exchange was made with Sources::snapshot. Leases of cells that it
/// moves are refused in any case, the first one of an array, too; several may read what it only reads.
///
/// start() throws also `invalid_use` when an open lease covers a cell that it moves, `device_lost`, and where it waits
/// `peer_lost` and `timeout`. When an exchange is destroyed in flight, cells on devices that were to be written are
/// invalid until they are written again.
class ArrayExchange : public ExchangeCalls {
 protected:
  ArrayExchange(ArrayPlan plan, ExchangeOptions options, CallSite where);
};

}  // namespace tranship
