// ContestCase: one case of a game that has ranks. Its rows: ours in threads and in processes, beside the same scores of
// the peers, for each state of the data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <harness/contest_row.hpp>
#include <harness/registry.hpp>

namespace tranship::bench {

struct ContestCase {
  std::string name;
  contest::Work work;
  std::vector<contest::Freshness> states;
  std::vector<GoalRule> goals = {};
  Game game = Game::distributed;
  /// As RowRule's.
  double bytes = 0, steps = 0;
  /// In the unit of the row.
  std::optional<double> target = std::nullopt;
  /// What the name of a row ends with whose ranks are threads.
  std::string threads_suffix = {};
  std::optional<ContestOptions> options = std::nullopt;
};

/// The name of a row, but for the state of its data.
std::string row_name(const ContestCase& c, RanksAre our_ranks);

/// Plays it and adds its rows, where any of them is asked for.
void measure(Report& report, const ContestCase& c);

}  // namespace tranship::bench
