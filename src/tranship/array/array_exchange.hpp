// Detail: ArrayExchange, the base of Redistribution, HaloExchange and InterfaceExchange: the calls of ExchangeCalls
// (run/exchange.hpp) on arrays that may have copies on devices.
#pragma once

#include <tranship/base/call_site.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

struct ArrayPlan;

/// Keeps the arrays that it moves, so their memory outlives it.
///
/// start() waits for no peer, with two exceptions. If leases have been opened on an array, start() waits until the
/// device that holds boundary cells has copied them to the host. If leases have accumulated in ghosts of a source,
/// start() is collective, because the owners get these values first. While no array has had a lease, start_may_wait()
/// is false and start() allocates nothing. Until finish() returns, or test() returns true, the sources must not be
/// written and the targets must not be touched, unless the exchange was made with Sources::snapshot. In either case,
/// leases of cells that it moves are refused, including the first lease of an array; leases that only read cells that
/// the exchange only reads are allowed.
///
/// start() also throws `invalid_use` when an open lease covers a cell that it moves, `device_lost`, and when it waits
/// `peer_lost` and `timeout`. If an exchange is destroyed in flight, the cells on devices that it was to write are
/// invalid until they are written again.
class ArrayExchange : public ExchangeCalls {
 protected:
  ArrayExchange(ArrayPlan plan, ExchangeOptions options, CallSite where);
};

}  // namespace tranship
