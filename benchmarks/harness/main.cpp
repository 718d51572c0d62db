// tranship-bench NAME... [--json FILE] [--readme FILE] [--quick] [--no-peers] [--filter TEXT] [--lost FILE] [--dir
// DIR]: runs benchmarks, prints a Markdown table, writes its rows as JSON, and puts them into the tables of a README;
// --from FILE takes the rows of a former run instead. Exit codes: 0, 1 (a benchmark failed), 2 (usage). A target that
// is missed is a result, not a failure.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <harness/readme.hpp>
#include <harness/registry.hpp>

#include <tranship/base/fail.hpp>

namespace {

using namespace tranship;

void write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) throw_error(ErrorCode::io, "cannot write '{}': error {}", path, errno);
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), file);
  if (std::fclose(file) != 0 || written != text.size())
    throw_error(ErrorCode::io, "cannot write '{}': {} of {} bytes written", path, written, text.size());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw_error(ErrorCode::io, "cannot read '{}': error {}", path, errno);
  return text;
}

std::vector<bench::Row> measured(const std::vector<bench::Benchmark>& chosen, bench::ReportOptions options) {
  bench::Report report(std::move(options));
  for (const bench::Benchmark& benchmark : chosen) {
    fmt::print(stderr, "tranship-bench: running {}\n", benchmark.name);
    report.begin(benchmark.name);
    benchmark.run(report);
  }
  return report.rows();
}

void refresh_readme(const std::string& path, const std::vector<bench::Row>& rows) {
  const bench::Readme readme = bench::with_tables(read_file(path), rows);
  if (!readme.kept.empty())
    fmt::print(stderr, "tranship-bench: {}: {} tables stay as they were, of which no row was measured: {}\n", path,
               readme.kept.size(), join_text(readme.kept, ", "));
  write_file(path, readme.text);
}

void list() {
  for (const bench::Benchmark& benchmark : bench::benchmarks())
    fmt::print("{:<16} {}\n", benchmark.name, benchmark.what);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of tranship, each beside its limit and its peers in the same run.", "tranship-bench");
  std::vector<std::string> names;
  std::string json_path, readme_path, lost_path, from_path;
  bench::ReportOptions options{.peers = bench::Peers::invited, .progress = bench::Progress::on_stderr};
  bool list_only = false;
  app.add_option("name", names, "benchmarks to run (see --list)");
  app.add_option("--json", json_path, "write the rows to this file, as a JSON array");
  app.add_option("--readme", readme_path, "put the rows into the tables of this file");
  app.add_option("--lost", lost_path, "only rows that missed their target in this JSON of a former run");
  app.add_option("--from", from_path, "measure nothing: take the rows of this JSON of a former run")
      ->excludes("name", "--json", "--lost");
  app.add_flag_callback(
      "--quick", [&] { options.effort = bench::Effort::quick; }, "a subset, in under a minute");
  app.add_flag_callback(
      "--no-peers", [&] { options.peers = bench::Peers::left_out; }, "only ours and the limits");
  app.add_option("--dir", options.scratch, "a folder for large files, which are removed again (build/bench)");
  app.add_option("--filter", options.filter, "only rows with this text in their names");
  app.add_flag_callback(
      "--list", [&] { list_only = true; }, "list the benchmarks");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (list_only) {
    list();
    return 0;
  }

  std::vector<bench::Benchmark> chosen;
  try {
    // Whatever is wrong with these files is found before hours of measuring.
    if (!readme_path.empty()) bench::with_tables(read_file(readme_path), {});
    if (!lost_path.empty()) options.only = bench::lost_rows(bench::rows_of_json(read_file(lost_path)));
    if (names.empty() && from_path.empty())
      throw_error(ErrorCode::invalid_use, "0 benchmarks named, at least 1 is needed (see --list)");
    for (const std::string& name : names) chosen.push_back(bench::benchmark_named(name));
    if (options.only)
      std::erase_if(chosen, [&](const bench::Benchmark& benchmark) {
        return std::none_of(options.only->begin(), options.only->end(),
                            [&](const auto& row) { return row.first == benchmark.name; });
      });
  } catch (const Error& error) {
    fmt::print(stderr, "tranship-bench: {}\n", error.what());
    return 2;
  }

  try {
    const std::vector<bench::Row> rows =
        from_path.empty() ? measured(chosen, options) : bench::rows_of_json(read_file(from_path));
    fmt::print("{}", bench::to_markdown(rows));
    if (!json_path.empty()) write_file(json_path, bench::to_json(rows));
    if (!readme_path.empty()) refresh_readme(readme_path, rows);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tranship-bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
