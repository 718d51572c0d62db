// Private: what the ranks of an exchange tell all others while they set it up. An error on one of them becomes one on
// all (fabric/agreement.hpp).
#pragma once

#include <cstdint>

#include <tranship/base/result.hpp>
#include <tranship/fabric/agreement.hpp>
#include <tranship/run/exchange_slots.hpp>

namespace tranship {

/// What all ranks must run alike.
struct ExchangeKind {
  PlanKind plan{};
  Schedule schedule{};
  Sources sources{};
  int arrays = 0;
  friend bool operator==(const ExchangeKind&, const ExchangeKind&) = default;
};

/// What a rank brings, and, combined, what all ranks have together.
struct ExchangeTotals {
  Alike<ExchangeKind> kind;
  Alike<std::uint64_t> layouts;  ///< of all slots, and how many arrays each has
  Alike<std::uint64_t> records;  ///< how elements that are moved as bytes are made up, where it is said
  /// Sums: messages, and the bytes that reach any rank, its own included.
  Index receives = 0;
  Index sends = 0;
  Index bytes = 0;
  /// Of any rank: messages that come from ranks that share memory, and Notices::Largest.
  Index reached_receives_max = 0;
  Index entries_max = 0;
  std::uint64_t notices_bytes_max = 0;
};

/// Collective: the terms of all ranks together. Throws on every rank where `so_far` is an error on one: that rank's
/// own, or one that names the rank and its reason; `mismatch` where kinds, schedules, sources, numbers of arrays,
/// layouts or elements differ, naming the first array that does.
ExchangeTotals agree(World& world, const ExchangeTotals& mine, const TransferPlan& plan, const ExchangeSlots& slots,
                     const Result<void>& so_far, CallSite where);
/// Collective: true where it is on any rank. Throws where `so_far` is an error on one.
bool agree_on_any(World& world, bool mine, const Result<void>& so_far, CallSite where);

/// The fingerprint of all slots with the numbers of their arrays.
std::uint64_t fingerprint_of(const TransferPlan& plan, const ExchangeSlots& slots);
/// That of how the elements of all arrays are made up; 0 where it is not said of any.
std::uint64_t fingerprint_of_records(const ExchangeSlots& slots);

}  // namespace tranship
