// tranship-bench NAME... [--json FILE] [--quick] [--no-peers] [--filter TEXT] [--dir DIR]: runs benchmarks, prints a
// Markdown table, and writes its rows as JSON. Exit codes: 0, 1 (a benchmark failed), 2 (usage). A target that is
// missed is a result, not a failure.
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
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

void list() {
  for (const bench::Benchmark& benchmark : bench::benchmarks())
    fmt::print("{:<16} {}\n", benchmark.name, benchmark.what);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Benchmarks of tranship, each beside its limit and its peers in the same run.", "tranship-bench");
  std::vector<std::string> names;
  std::string json_path;
  bench::ReportOptions options{.peers = bench::Peers::invited, .progress = bench::Progress::on_stderr};
  bool list_only = false;
  app.add_option("name", names, "benchmarks to run (see --list)");
  app.add_option("--json", json_path, "write the rows to this file, as a JSON array");
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
    if (names.empty()) throw_error(ErrorCode::invalid_use, "0 benchmarks named, at least 1 is needed (see --list)");
    for (const std::string& name : names) chosen.push_back(bench::benchmark_named(name));
  } catch (const Error& error) {
    fmt::print(stderr, "tranship-bench: {}\n", error.what());
    return 2;
  }

  try {
    bench::Report report(options);
    for (const bench::Benchmark& benchmark : chosen) {
      fmt::print(stderr, "tranship-bench: running {}\n", benchmark.name);
      report.begin(benchmark.name);
      benchmark.run(report);
    }
    fmt::print("{}", bench::to_markdown(report.rows()));
    if (!json_path.empty()) write_file(json_path, bench::to_json(report.rows()));
  } catch (const std::exception& error) {
    fmt::print(stderr, "tranship-bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
