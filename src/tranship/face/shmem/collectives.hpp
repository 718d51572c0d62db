// Private: NVSHMEM's collective calls by number, with its rules for sizes.
#pragma once

#include <cstdint>

#include <tranship/base/call_site.hpp>
#include <tranship/base/reduction.hpp>
#include <tranship/base/strided_view.hpp>

namespace tranship {

class Team;

enum class ShmemCollective : std::int32_t { reduce, reducescatter, fcollect, broadcast, alltoall };
inline constexpr const char* shmem_collective_names[] = {"reduce", "reducescatter", "fcollect", "broadcast",
                                                         "alltoall"};
constexpr bool reduces(ShmemCollective kind) noexcept {
  return kind <= ShmemCollective::reducescatter;
}

/// Collective. The sizes follow NVSHMEM: for reduce, broadcast and alltoall the smaller of target and source counts;
/// the target of a reducescatter is what every member gets, and the source of an fcollect is what it gives.
void run_collective(ShmemCollective kind, Team& team, const StridedView& target, const StridedView& source,
                    Reduction reduction, int root, CallSite where);

}  // namespace tranship
