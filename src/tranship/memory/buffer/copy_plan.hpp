// Private: CopyPlan, the steps that a request needs, with the source memory of each region and the ledger's records of
// the copies. Values only: it copies nothing and allocates only its lists.
#pragma once

#include <optional>
#include <span>

#include <tranship/memory/buffer/residence.hpp>
#include <tranship/memory/ledger.hpp>
#include <tranship/memory/state/few.hpp>

namespace tranship::detail {

/// Returns how a copy travels between two memories.
Route route_between(const Devices& devices, MemoryId source, MemoryId target);

/// The work that a request needs before its lease may open.
struct CopyPlan {
  /// `asked` overrides the cause of all copies; empty: each copy's own cause.
  CopyPlan(const BufferShape& shape, const Residence& residence, const Request& request, std::optional<Cause> asked);

  Few<Step> steps;
  Optional<Region> own;     ///< Residence::own_copy_of(request)
  Few<CopyRecord> records;  ///< of all copies; the one of `own` is last
};

/// Adds the records of the copies that the steps make between memories.
void add_records(const BufferShape& shape, const Residence& residence, std::span<const Step> steps,
                 const Request& request, std::optional<Cause> asked, Few<CopyRecord>& records);
/// The record of a copy within one memory that ends the sharing with a duplicate.
CopyRecord record_of_own(const BufferShape& shape, const Region& moved, const Request& request);

}  // namespace tranship::detail
