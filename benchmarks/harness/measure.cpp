#include <algorithm>

#include <harness/measure.hpp>

#include <tranship/base/fail.hpp>

namespace tranship::bench {
namespace {

constexpr int rounds_min = 9;

std::int64_t timed_ns(const Contestant& contestant, std::int64_t runs, const MeasureOptions& options) {
  if (!contestant.prepare) {
    const std::int64_t begin_ns = options.clock_ns();
    for (std::int64_t i = 0; i < runs; ++i) contestant.run();
    return options.clock_ns() - begin_ns;
  }
  std::int64_t total_ns = 0;
  for (std::int64_t i = 0; i < runs; ++i) {
    contestant.prepare();
    const std::int64_t begin_ns = options.clock_ns();
    contestant.run();
    total_ns += options.clock_ns() - begin_ns;
  }
  return total_ns;
}

/// How many runs fill a round; finding out warms the caches too.
std::int64_t runs_per_round(const Contestant& contestant, const MeasureOptions& options) {
  constexpr std::int64_t runs_max = std::int64_t{1} << 30;
  std::int64_t runs = 1;
  while (runs < runs_max && timed_ns(contestant, runs, options) < options.round_ns_min) runs *= 2;
  return runs;
}

}  // namespace

std::vector<double> medians_ns(const std::vector<Contestant>& contestants, const MeasureOptions& options) {
  check_rounds(options.rounds);
  if (contestants.empty())
    throw_error(ErrorCode::invalid_use, "nothing to measure: 0 contestants, at least 1 is needed");

  const std::size_t count = contestants.size();
  std::vector<std::int64_t> runs;
  for (const Contestant& contestant : contestants) runs.push_back(runs_per_round(contestant, options));

  std::vector<std::vector<double>> samples_ns(count);
  take_turns(static_cast<int>(count), options.rounds, [&](int c) {
    const auto elapsed_ns = static_cast<double>(timed_ns(contestants[c], runs[c], options));
    samples_ns[c].push_back(elapsed_ns / static_cast<double>(runs[c]));
  });

  std::vector<double> medians;
  for (auto& samples : samples_ns) medians.push_back(median(std::move(samples)));
  return medians;
}

void take_turns(int contestants, int rounds, const std::function<void(int)>& turn) {
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < contestants; ++i) turn((round + i) % contestants);
}

void check_rounds(int rounds) {
  if (rounds < rounds_min)
    throw_error(ErrorCode::invalid_use, "a median needs at least {} rounds, not {}", rounds_min, rounds);
}

double median(std::vector<double> values) {
  TRANSHIP_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace tranship::bench
