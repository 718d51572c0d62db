// From scores of a contest to a row: ours, the limit, the peers, and the goals against them.
#pragma once

#include <string>
#include <vector>

#include <harness/contest.hpp>
#include <harness/row.hpp>

namespace tranship::bench {

/// The scores that a goal is set against; the fastest of them counts.
enum class Rivals : std::uint8_t {
  limit,
  our_copy,   ///< our copy, by hand in the same memory
  mpi_calls,  ///< every method of Open MPI and MPICH but loops over a shared window
  packed_alltoallv,
  alltoallw,
  windows,  ///< loops over a shared window
  fftw,
  scalapack,
  by_call,  ///< every method of every peer but loops over a shared window
  everybody,
};

struct GoalRule {
  Rivals rivals;
  double ratio = 1;
};

struct RowRule {
  std::string name;
  contest::Freshness freshness = contest::Freshness::fresh;
  /// Bytes of one operation: the unit is GB/s.
  double bytes = 0;
  /// Steps of one operation: the unit is ns for one step. Without bytes and steps, the unit is ms.
  double steps = 0;
  std::vector<GoalRule> goals = {};
  /// Selects one of the two contenders that are ours; the row leaves the other one out. Nothing when there is only one
  /// such contender, because the work has no ranks.
  std::optional<RanksAre> our_ranks = std::nullopt;
};

/// "fresh", "warm", "cold".
const char* name_of(contest::Freshness freshness);

/// Leaves out goals against rivals without a score. Throws `internal`, with the reason if there is one, when our own
/// score is missing.
Row row_of(const RowRule& rule, const std::vector<Score>& scores, const std::vector<Absence>& absences);

}  // namespace tranship::bench
