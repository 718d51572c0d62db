#include <algorithm>

#include <harness/registry.hpp>

#include <tranship/base/fail.hpp>

namespace tranship::bench {
namespace {

std::vector<Benchmark>& registered() {
  static std::vector<Benchmark> all;
  return all;
}

}  // namespace

MeasureOptions Report::measure_options() const {
  MeasureOptions options;
  if (is_quick()) options.round_ns_min = 1'000'000;
  return options;
}

ContestOptions Report::contest_options() const {
  ContestOptions options;
  if (is_quick()) options.turn_ns = 2'000'000;
  return options;
}

void Report::announce(std::string_view name) const {
  if (options_.progress == Progress::silent) return;
  fmt::print(stderr, "tranship-bench: {} s: {}: {}\n", (now_ns() - begin_ns_) / 1'000'000'000, bench_, name);
}

bool Report::wants(std::string_view name) const {
  if (name.find(options_.filter) == std::string_view::npos) return false;
  return !options_.only || std::any_of(options_.only->begin(), options_.only->end(), [&](const auto& row) {
    return row.first == bench_ && std::string_view(row.second).starts_with(name);
  });
}

void Report::add(Row row) {
  row.bench = bench_;
  if (row.name.empty() || row.unit.empty())
    throw_error(ErrorCode::invalid_use, "a row of benchmark '{}' needs a case and a unit, has '{}' and '{}'", bench_,
                row.name, row.unit);
  for (const Row& other : rows_)
    if (other.bench == row.bench && other.full_name() == row.full_name())
      throw_error(ErrorCode::invalid_use, "benchmark '{}' has the case '{}' already: {} then, {} now", bench_,
                  row.full_name(), other.ours, row.ours);
  const bool is_asked_for = !options_.only || options_.only->contains({row.bench, row.full_name()});
  if (!is_asked_for || !wants(row.full_name())) return;
  rows_.push_back(std::move(row));
}

std::set<std::pair<std::string, std::string>> lost_rows(const std::vector<Row>& rows) {
  std::set<std::pair<std::string, std::string>> lost;
  for (const Row& row : rows)
    if (row.met() == false) lost.emplace(row.bench, row.full_name());
  return lost;
}

std::vector<Benchmark> benchmarks() {
  std::vector<Benchmark> sorted = registered();
  std::sort(sorted.begin(), sorted.end(), [](const Benchmark& a, const Benchmark& b) { return a.name < b.name; });
  return sorted;
}

Benchmark benchmark_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name == name) return benchmark;
    names.push_back(benchmark.name);
  }
  throw_error(ErrorCode::invalid_use, "no benchmark is called '{}'; there are {}: {}", name, names.size(),
              join_text(names, ", "));
}

Registration::Registration(const Benchmark& benchmark) {
  registered().push_back(benchmark);
}

}  // namespace tranship::bench
