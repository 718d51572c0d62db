// ContestCase: one case of a game that has ranks. For each state of the data it adds two rows, ours in threads and ours
// in processes, both beside the same scores of the peers.
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
  /// See RowRule.
  double bytes = 0, steps = 0;
  /// In the unit of the row.
  std::optional<double> target = std::nullopt;
  /// The end of the name of the row in which our ranks are threads; that of processes ends with ", processes".
  std::string threads_suffix = {};
  std::optional<ContestOptions> options = std::nullopt;
};

/// The name of a row without the state of its data.
std::string row_name(const ContestCase& c, RanksAre our_ranks);

/// Measures the case and adds its rows, unless the report wants none of them.
void measure(Report& report, const ContestCase& c);

}  // namespace tranship::bench
