// From scores of a contest to a row: ours, the limit, the peers, and the goals against them.
#pragma once

#include <string>
#include <vector>

#include <harness/contest.hpp>
#include <harness/row.hpp>

namespace tranship::bench {

/// Whom a goal of the table is set against; of several the best counts.
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
  /// Of how many steps an operation consists: the unit is ns, of one step; where neither is said, it is ms.
  double steps = 0;
  std::vector<GoalRule> goals = {};
  /// Whom the row is about, of two contenders that are ours; the other one is left out of it. Nothing where there is
  /// one, whose work has no ranks.
  std::optional<RanksAre> our_ranks = std::nullopt;
};

/// "fresh", "warm", "cold".
const char* name_of(contest::Freshness freshness);

/// Goals against rivals that are not there are left out. Throws `internal`, with the reason where there is one, when
/// ours is not there.
Row row_of(const RowRule& rule, const std::vector<Score>& scores, const std::vector<Absence>& absences);

}  // namespace tranship::bench
