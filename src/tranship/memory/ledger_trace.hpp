// Private: the copies of a ledger as slices of a trace.
#pragma once

#include <tranship/base/trace_events.hpp>
#include <tranship/memory/ledger.hpp>

namespace tranship {

/// A slice on the track of the copy's pair of devices, with its cause and both call sites.
TraceSlice slice_of(const CopyRecord& copy);

}  // namespace tranship
