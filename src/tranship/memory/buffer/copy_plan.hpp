// Private: CopyPlan, which regions come from which memory for a request, and how the ledger will call these copies.
// Values only: nothing is copied or allocated here but the lists.
#pragma once

#include <optional>
#include <span>

#include <tranship/memory/buffer/residence.hpp>
#include <tranship/memory/ledger.hpp>
#include <tranship/memory/state/few.hpp>

namespace tranship::detail {

/// The way of a copy between two memories.
Route route_between(const Devices& devices, MemoryId source, MemoryId target);

/// What a request needs before a lease of it may be opened.
struct CopyPlan {
  /// `asked` is the cause of copies that were asked for by name.
  CopyPlan(const BufferShape& shape, const Residence& residence, const Request& request, std::optional<Cause> asked);

  Few<Step> steps;
  Optional<Region> own;     ///< Residence::own_copy_of the request
  Few<CopyRecord> records;  ///< of all that is copied, `own` last
};

/// Adds the records of what steps copy between memories.
void add_records(const BufferShape& shape, const Residence& residence, std::span<const Step> steps,
                 const Request& request, std::optional<Cause> asked, Few<CopyRecord>& records);
/// That of a copy of the buffer's own.
CopyRecord record_of_own(const BufferShape& shape, const Region& moved, const Request& request);

}  // namespace tranship::detail
