// Private: decides which messages of an exchange go through a staging buffer, and measures schedules.
#pragma once

#include <cstdint>
#include <span>

#include <tranship/base/function_ref.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

const char* name_of(Schedule schedule);
/// For sentences of the form "rank 0 takes ...".
const char* name_of(Sources sources);

/// The stretches, contiguous on both sides, that a message would move directly.
struct ContiguousRuns {
  Index bytes = 0;
  Index count = 0;
};

/// Returns true when a message that could go directly is staged. Both ends see the same runs and decide alike.
bool is_staged(Schedule schedule, const ContiguousRuns& direct);
/// The rule of `automatic` in one line, for explanations.
std::string automatic_rule();

struct Measured {
  Schedule schedule{};
  std::int64_t ns = 0;
};

/// The schedules that Schedule::measured tries.
std::span<const Schedule> schedules_to_measure() noexcept;
/// Collective: the median time of an exchange, taken on the slowest rank; equal on all ranks.
std::int64_t time_ns(World& world, CallSite where, FunctionRef<void()> exchange);

}  // namespace tranship
