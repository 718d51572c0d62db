#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/fabric/processes/launch_program.hpp>
#include <tranship/fabric/settings.hpp>

namespace tranship::cli {
namespace {

struct LaunchArguments {
  int ranks = 0;
  std::optional<std::string> heap;
  std::optional<std::string> teams;
  std::optional<std::string> timeout;
};

constexpr const char* launch_footer = R"(Examples:
  tranship launch -n 4 ./solver input.nml
  TRANSHIP_TIMEOUT=5 tranship launch -n 2 --heap 1G ./solver
  tranship launch -n 2 ./antenna : -n 3 ./detector --threshold 4

Programs that a colon separates, each with its number of ranks, run as one world; the ranks of the first come first.

The ranks are processes of this machine; each becomes one when it calls tranship::launch(f). They share memory that has
no name, and die with this command. When one dies, the others fail with its name within a second; those that have not
ended after another second are named, and killed after 10 s. SIGINT, SIGTERM and SIGHUP are passed on to the ranks,
which have as long to end; a second one kills them. Exit code: 0 when all ended with 0, else that of the first rank that
failed (128 and the signal when it was killed), or the status with which a rank has ended all of them (global_exit).)";

constexpr int ranks_max = 4096;

/// Parses the words after a colon, "-n 3 ./b input": the number of ranks, and the program.
ProgramPart part_of(const std::vector<std::string>& words) {
  ProgramPart part;
  const bool is_separate = words.size() > 1 && (words[0] == "-n" || words[0] == "--ranks");
  std::string number;
  if (is_separate)
    number = words[1];
  else if (!words.empty() && words[0].rfind("-n", 0) == 0)
    number = words[0].substr(2);
  else if (!words.empty() && words[0].rfind("--ranks=", 0) == 0)
    number = words[0].substr(8);
  const char* const end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, part.ranks);
  if (number.empty() || read.ec != std::errc() || read.ptr != end || part.ranks < 1)
    throw UsageError{fmt::format("a colon must be followed by -n and a number of ranks, not by '{}'",
                                 words.empty() ? "" : words[0])};
  part.words.assign(words.begin() + (is_separate ? 2 : 1), words.end());
  return part;
}

/// Parses `-n 2 a x : -n 3 b`; a word that is a colon separates programs.
std::vector<ProgramPart> parts_of(int ranks, const std::vector<std::string>& words) {
  std::vector<ProgramPart> parts;
  auto begin = words.begin();
  while (true) {
    const auto end = std::find(begin, words.end(), ":");
    const std::vector<std::string> part(begin, end);
    parts.push_back(parts.empty() ? ProgramPart{ranks, part} : part_of(part));
    if (parts.back().words.empty()) throw UsageError{"launch needs a program; see 'tranship launch --help'"};
    if (end == words.end()) break;
    begin = end + 1;
  }
  int all = 0;
  for (const ProgramPart& part : parts) {
    if (part.ranks > ranks_max || all > ranks_max - part.ranks)
      throw UsageError{fmt::format("more than {} ranks", ranks_max)};
    all += part.ranks;
  }
  return parts;
}

/// The ranks read the value of an option from the environment, as in any program. `parse` throws if the value is wrong.
template <class Number>
void pass_on(const char* variable, const char* option, const std::optional<std::string>& text,
             Number (*parse)(const std::string& name, const std::string& text)) {
  if (!text) return;
  if (const Result<Number> number = attempt([&] { return parse(option, *text); }); !number)
    throw UsageError{number.error().message()};
  setenv(variable, text->c_str(), 1);
}

volatile std::sig_atomic_t signal_number = 0, signal_came_to_all = 0;

/// Returns the signal that came since the last call. If the system itself sent it, the terminal's whole group has
/// received it.
PassedSignal take_signal() {
  const PassedSignal taken{.number = signal_number, .has_been_sent = signal_came_to_all != 0};
  if (taken.number != 0) signal_number = 0;
  return taken;
}

void note_signals() {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int signal, siginfo_t* from, void*) {
    signal_came_to_all = from->si_code == SI_KERNEL;
    signal_number = signal;
  };
  handle_interrupts(action);
}

int run(const LaunchArguments& options, const std::vector<std::string>& words) {
  const std::vector<ProgramPart> programs = parts_of(options.ranks, words);
  pass_on("TRANSHIP_HEAP", "--heap", options.heap, heap_bytes_of);
  pass_on("TRANSHIP_TEAMS", "--teams", options.teams, teams_of);
  pass_on("TRANSHIP_TIMEOUT", "--timeout", options.timeout, timeout_ns_of);
  const auto notice = [](const std::string& text) { print_error(text); };
  const auto signals = [] { return take_signal(); };
  note_signals();
  const ProgramResult result = launch_program({.notice = notice, .signal_check = signals}, programs);
  if (result.exit_status == 0) return 0;
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
  auto options = std::make_shared<LaunchArguments>();
  Command command = line.add("launch", "Start a program as the ranks of one world");
  command.option("-n,--ranks", options->ranks, "How many ranks").required().in_range(1, ranks_max);
  command.option("--heap", options->heap, "What each symmetric heap may grow to: bytes, or with K, M, G, T");
  command.option("--teams", options->teams, "How many teams can exist at a time (64)");
  command.option("--timeout", options->timeout, "Seconds that a wait may last, or off");
  command.footer(launch_footer);
  command.runs_program([options](const std::vector<std::string>& program) {
    if (const int code = run(*options, program); code != 0) throw ProgramFailed{code};
  });
}

}  // namespace tranship::cli
