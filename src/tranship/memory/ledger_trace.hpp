// Private: how traces show the copies of a ledger.
#pragma once

#include <tranship/base/trace_events.hpp>
#include <tranship/memory/ledger.hpp>

namespace tranship {

/// On the track of its pair of devices, with its cause and both call sites.
TraceSlice slice_of(const CopyRecord& copy);

}  // namespace tranship
