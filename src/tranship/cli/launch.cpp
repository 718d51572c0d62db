#include <cstdlib>
#include <memory>

#include <fmt/core.h>

#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/fabric/processes/launch_program.hpp>

namespace tranship::cli {
namespace {

struct Options {
  int ranks = 0;
  std::string heap;
  std::string timeout;
};

constexpr const char* footer = R"(Examples:
  tranship launch -n 4 ./solver input.nml
  TRANSHIP_TIMEOUT=5 tranship launch -n 2 --heap 1G ./solver

The ranks are processes of this machine; each becomes one when it calls tranship::launch(f). They share memory that has
no name, and die with this command. When one dies, the others fail with its name within a second; those that have not
ended after another second are named, and killed after 10 s. Exit code: 0 when all ended with 0, else that of the first rank that failed (128 and the signal when it was killed).)";

int run(const Options& options, const std::vector<std::string>& program) {
  if (program.empty()) throw UsageError{"launch needs a program; see 'tranship launch --help'"};
  // The ranks read them from the environment, as any program does.
  if (!options.heap.empty()) setenv("TRANSHIP_HEAP", options.heap.c_str(), 1);
  if (!options.timeout.empty()) setenv("TRANSHIP_TIMEOUT", options.timeout.c_str(), 1);
  const auto notice = [](const std::string& text) { print_error(text); };
  const ProgramResult result = launch_program({.ranks = options.ranks, .notice = notice}, program);
  if (result.failed >= 0) {
    print_error(fmt::format("rank {} failed: {}", result.failed, result.reason));
    if (!result.late.empty()) print_error(result.late);
    const int code = result.exit_codes[static_cast<std::size_t>(result.failed)];
    return code != 0 ? code : 1;
  }
  for (const int code : result.exit_codes)
    if (code != 0) return code;
  return 0;
}

}  // namespace

void add_launch(CommandLine& line) {
  auto options = std::make_shared<Options>();
  Command command = line.add("launch", "Start a program as the ranks of one world");
  command.option("-n,--ranks", options->ranks, "How many ranks").required().in_range(1, 4096);
  command.option("--heap", options->heap, "What each symmetric heap may grow to: bytes, or with K, M, G, T");
  command.option("--timeout", options->timeout, "Seconds that a wait may last, or off");
  command.footer(footer);
  command.runs_program([options](const std::vector<std::string>& program) {
    if (const int code = run(*options, program); code != 0) throw ProgramFailed{code};
  });
}

}  // namespace tranship::cli
