// Private: the collective agreements of an exchange's set-up. An error on one rank becomes an error on all
// (fabric/agreement.hpp).
#pragma once

#include <cstdint>

#include <tranship/base/result.hpp>
#include <tranship/fabric/agreement.hpp>
#include <tranship/run/exchange_slots.hpp>

namespace tranship {

/// Properties that must be equal on all ranks.
struct ExchangeKind {
  PlanKind plan{};
  Schedule schedule{};
  Sources sources{};
  int arrays = 0;
  friend bool operator==(const ExchangeKind&, const ExchangeKind&) = default;
};

/// The contribution of a rank and, after the agreement, the combination of all.
struct ExchangeTotals {
  Alike<ExchangeKind> kind;
  Alike<std::uint64_t> layouts;  ///< of all slots, with their numbers of arrays
  Alike<std::uint64_t> records;  ///< how elements that are moved as bytes are composed, where stated
  /// Sums: messages, and bytes that reach any rank, including from itself.
  Index receives = 0;
  Index sends = 0;
  Index bytes = 0;
  /// Maxima over ranks: messages received from ranks that share memory, and Notices::Largest.
  Index reached_receives_max = 0;
  Index entries_max = 0;
  std::uint64_t notices_bytes_max = 0;
};

/// Collective: combines the totals of all ranks. Throws on every rank when `so_far` is an error on one: that rank's own
/// error there, and one that names the rank and its reason elsewhere. Throws `mismatch` when kinds, schedules, sources,
/// numbers of arrays, layouts or elements differ, and names the first array that differs.
ExchangeTotals agree(World& world, const ExchangeTotals& mine, const TransferPlan& plan, const ExchangeSlots& slots,
                     const Result<void>& so_far, CallSite where);
/// Collective: returns true when `mine` is true on any rank. Throws when `so_far` is an error on one.
bool agree_on_any(World& world, bool mine, const Result<void>& so_far, CallSite where);

/// The fingerprint of all slots and their numbers of arrays.
std::uint64_t fingerprint_of(const TransferPlan& plan, const ExchangeSlots& slots);
/// The fingerprint of how the elements of all arrays are composed; 0 when it is stated for none.
std::uint64_t fingerprint_of_records(const ExchangeSlots& slots);

}  // namespace tranship
