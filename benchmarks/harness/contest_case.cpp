#include <algorithm>

#include <harness/contest_case.hpp>

namespace tranship::bench {

std::string row_name(const ContestCase& c, RanksAre our_ranks) {
  return c.name + (our_ranks == RanksAre::threads ? c.threads_suffix : ", processes");
}

void measure(Report& report, const ContestCase& c) {
  constexpr RanksAre both[] = {RanksAre::threads, RanksAre::processes};
  const auto wants = [&](contest::Freshness freshness) {
    return std::any_of(std::begin(both), std::end(both),
                       [&](RanksAre ours) { return report.wants(row_name(c, ours) + ", " + name_of(freshness)); });
  };
  if (std::none_of(c.states.begin(), c.states.end(), wants)) return;
  report.announce(c.name);

  Contest contest(report.league().with_ranks(c.work.ranks, c.game), c.work,
                  c.options.value_or(report.contest_options()));
  for (const contest::Freshness freshness : c.states) {
    if (!wants(freshness)) continue;
    const std::vector<Score> scores = contest.scores(freshness);
    for (const RanksAre ours : both) {
      Row row = row_of({.name = row_name(c, ours),
                        .freshness = freshness,
                        .bytes = c.bytes,
                        .steps = c.steps,
                        .goals = c.goals,
                        .our_ranks = ours},
                       scores, contest.absences());
      row.target = c.target;
      report.add(std::move(row));
    }
  }
}

}  // namespace tranship::bench
