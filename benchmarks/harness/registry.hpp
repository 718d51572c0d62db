// The registry: a benchmark is one file benchmarks/<name>_bench.cpp that says
//
//   TRANSHIP_BENCH(planning, "time to plan against extents and ranks") {
//     const auto ns = medians_ns({{[&] { ... }}}, report.measure_options());
//     report.add({.name = "N = 1e9", .unit = "ms", .ours = ns[0] * 1e-6, .target = 5});
//   }
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <harness/league.hpp>
#include <harness/measure.hpp>
#include <harness/row.hpp>

namespace tranship::bench {

/// How much to measure: all cases, or those that answer in seconds.
enum class Effort { full, quick };

enum class Progress : std::uint8_t { silent, on_stderr };

struct ReportOptions {
  Effort effort = Effort::full;
  Peers peers = Peers::left_out;
  /// Only rows with this in their names; empty: all.
  std::string filter = {};
  /// Only these, by benchmark and full name.
  std::optional<std::set<std::pair<std::string, std::string>>> only = std::nullopt;
  /// For files of benchmarks, which remove what they make.
  std::filesystem::path scratch = "build/bench";
  Progress progress = Progress::silent;
};

/// Collects the rows of benchmarks and passes them the options of the run.
class Report {
 public:
  explicit Report(ReportOptions options) : options_(std::move(options)), league_(options_.peers) {}

  bool is_quick() const noexcept { return options_.effort == Effort::quick; }
  MeasureOptions measure_options() const;
  ContestOptions contest_options() const;
  /// Returns true when the options may ask for a row whose name is `name` or starts with it. Call it before measuring.
  bool wants(std::string_view name) const;
  /// Prints on stderr what is measured from now on, unless progress is silent.
  void announce(std::string_view name) const;
  /// Adds a row to the benchmark that runs; drops a row that the options do not ask for. Throws `invalid_use` when the
  /// benchmark has the case already, or when the row has no name or no unit.
  void add(Row row);
  const std::filesystem::path& scratch() const noexcept { return options_.scratch; }
  League& league() noexcept { return league_; }

  const std::vector<Row>& rows() const noexcept { return rows_; }
  /// The rows added from now on belong to the benchmark `name`.
  void begin(std::string_view name) { bench_ = name; }

 private:
  ReportOptions options_;
  std::string bench_;
  std::vector<Row> rows_;
  std::int64_t begin_ns_ = now_ns();
  League league_;
};

struct Benchmark {
  std::string_view name;
  std::string_view what;
  void (*run)(Report&);
};

/// The rows of a former run that did not meet their target, by benchmark and full name.
std::set<std::pair<std::string, std::string>> lost_rows(const std::vector<Row>& rows);

/// All benchmarks linked in, by name.
std::vector<Benchmark> benchmarks();
/// Returns the benchmark called `name`. Throws `invalid_use`, with the names of all benchmarks, when there is none.
Benchmark benchmark_named(std::string_view name);

struct Registration {
  explicit Registration(const Benchmark& benchmark);
};

}  // namespace tranship::bench

#define TRANSHIP_BENCH(name, what)                                                               \
  static void bench_##name(::tranship::bench::Report& report);                                   \
  static const ::tranship::bench::Registration registration_##name{{#name, what, bench_##name}}; \
  static void bench_##name([[maybe_unused]] ::tranship::bench::Report& report)
