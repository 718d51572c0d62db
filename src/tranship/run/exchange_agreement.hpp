// Private: what the ranks of an exchange tell each other while they set it up, so that what fails on one rank fails on
// all.
#pragma once

#include <cstdint>
#include <vector>

#include <tranship/base/result.hpp>
#include <tranship/run/exchange_slots.hpp>

namespace tranship {

/// What a rank tells all others before they go on.
struct Vote {
  int code = 0;  ///< of the error that stands in this rank's way, or 0
  PlanKind kind{};
  Schedule schedule{};
  Sources sources{};
  int arrays = 0;
  std::uint64_t layouts = 0;  ///< of all slots, and how many arrays each has
  std::uint64_t records = 0;  ///< how elements that are moved as bytes are made up; 0: not said of any
  Index receives = 0;
  Index sends = 0;
  Index bytes = 0;                 ///< that reach this rank, its own included
  const void* arrivals = nullptr;  ///< where its lists lie, in its own addresses
  const void* cards = nullptr;
  bool has_staged = false;
  /// To and from peers that are only messaged: how many messages, and the room for those that come.
  Index posted_receives = 0;
  Index posted_sends = 0;
  Index inbox_lines = 0;

  bool posts() const noexcept { return posted_receives > 0 || posted_sends > 0; }
};

/// Collective: the votes of all ranks, by rank. Throws on every rank where `so_far` is an error on one: that rank's
/// own, or one that names the rank and its reason; `mismatch` where kinds, schedules, sources or numbers of
/// arrays differ.
std::vector<Vote> agree(World& world, const Vote& mine, const Result<void>& so_far, CallSite where);

/// The fingerprint of all slots with the numbers of their arrays.
std::uint64_t fingerprint_of(const TransferPlan& plan, const ExchangeSlots& slots);
/// The same of how the elements of all arrays are made up; 0 where it is not said of any.
std::uint64_t fingerprint_of_records(const ExchangeSlots& slots);
/// Throws `mismatch` where the layouts or the elements of some rank differ, naming the first array that does.
/// Collective where it throws, which all ranks see alike.
void check_layouts(World& world, const std::vector<Vote>& votes, const TransferPlan& plan, const ExchangeSlots& slots,
                   CallSite where);

}  // namespace tranship
