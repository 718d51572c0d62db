// Makes the runs of a case: its variants, blocks, teams and places, the bytes before each run, the CPU's result, and
// the comparison of two results. This part knows nothing of CUDA.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lanes/host_cases.hpp"

namespace tranship::device {

using Bytes = std::vector<unsigned char>;

/// Describes one launch of a case.
struct Run {
  RunArgs args;
  int lanes = 1;
  std::uint64_t seed = 1;
};
std::string name_of(const CaseFacts& facts);
std::string name_of(const Run& run);

/// Leaves, of the words of all teams of an arena after a run, only whether members have met: how they do is their own
/// affair, and lanes that run side by side do it in another way.
void forget_words(unsigned char* arena);

enum class Extent { small, full };
/// Returns all variants; 2 ranks have blocks of all sizes, and other counts have some of them.
std::vector<Run> runs_of(const CaseFacts& facts, int ranks, Extent extent);

/// Returns the arenas of all ranks before a run.
std::vector<Bytes> arenas_before(const CaseFacts& facts, const Run& run);

/// Selects how ranks on the CPU reach each other: by loads and stores, in the order of lanes that take turns or of
/// those of a card; by a context; or by simulated messages that are late.
enum class Route { memory, side_by_side, context, simulated };
inline const char* name_of(Route route) {
  constexpr const char* names[] = {"memory", "side by side", "context", "simulated"};
  return names[int(route)];
}
/// Returns the arenas of all ranks after each run. Throws what a rank has thrown.
std::vector<std::vector<Bytes>> arenas_after(const HostCase& of, const std::vector<Run>& runs,
                                             const std::vector<std::vector<Bytes>>& before, Route route);

/// Describes the first difference; empty if there is none.
std::string difference(const std::vector<Bytes>& wanted, const std::vector<Bytes>& found);

/// Computes a ring's result without lanes or ranks and compares it with `after`; empty if they agree, or if the case is
/// another one.
std::string ring_difference(const CaseFacts& facts, const Run& run, const std::vector<Bytes>& before,
                            const std::vector<Bytes>& after);

}  // namespace tranship::device
