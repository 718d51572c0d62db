// Private: which messages of an exchange go by way of a staging buffer, and schedules that are chosen by measuring.
#pragma once

#include <cstdint>
#include <span>

#include <tranship/base/function_ref.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

const char* name_of(Schedule schedule);
/// In sentences of the form "rank 0 takes ...".
const char* name_of(Sources sources);

/// What a message would move directly: stretches that are contiguous on both sides.
struct ContiguousRuns {
  Index bytes = 0;
  Index count = 0;
};

/// Whether a message that could go directly is staged. Both ends see the same runs and decide alike.
bool is_staged(Schedule schedule, const ContiguousRuns& direct);
/// The rule of `automatic` in one line, for explanations.
std::string automatic_rule();

struct Measured {
  Schedule schedule{};
  std::int64_t ns = 0;
};

/// Those that Schedule::measured tries.
std::span<const Schedule> schedules_to_measure() noexcept;
/// The median time of an exchange, of the slowest rank. Collective, with one answer on all ranks.
std::int64_t time_ns(World& world, CallSite where, FunctionRef<void()> exchange);

}  // namespace tranship
