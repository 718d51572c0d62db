#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/core.h>

#include <tranship/cli/arguments.hpp>
#include <tranship/cli/commands.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/fabric/sim/simulate_program.hpp>

namespace tranship::cli {
namespace {

struct SimulateArguments {
  SimulatedProgramOptions simulated;
  bool messaged = false;
};

constexpr const char* simulate_footer = R"(Examples:
  tranship simulate -n 4 ./solver input.nml
  tranship simulate -n 4 --seed 17 --seeds 1 --messaged ./solver input.nml

The program runs as one process. Where it calls tranship::launch(f), f runs as -n ranks in one thread, once for each
seed: transfers come late, in pieces, and in every order that no fence, quiet or signal forbids. Where it joins its
world by a call of its own (RankScope::join, DRI_Init), its main() runs as these ranks, and must return. These ranks
share the static variables of the program, which keep their values from seed to seed. Exit code: 0 when all seeds and
the program ended well, else that of the program (128 and the signal when it was killed), or 1.)";

/// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  constexpr std::string_view plain = "_-./=:,+@%";
  const auto is_plain = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || plain.find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

int run(const SimulateArguments& options, const std::vector<std::string>& program) {
  if (program.empty()) throw UsageError{"simulate needs a program; see 'tranship simulate --help'"};
  SimulatedProgramOptions simulated = options.simulated;
  if (options.messaged) simulated.peers = PeerKind::messaged;
  const SimulatedProgramResult result = simulate_program(simulated, program);
  const int code = result.exit_code != 0 ? result.exit_code : 1;
  if (result.failed_seed) {
    print_error(fmt::format("seed {}: {}", *result.failed_seed, result.reason));
    std::string again = fmt::format("tranship simulate -n {} --seed {} --seeds 1{}", simulated.ranks,
                                    *result.failed_seed, options.messaged ? " --messaged" : "");
    if (simulated.ranks_per_host > 0) again += fmt::format(" --ranks-per-host {}", simulated.ranks_per_host);
    for (const std::string& word : program) again += " " + quoted(word);
    print_note("again: " + again + "\n");
    return code;
  }
  if (!result.reason.empty()) {
    print_error(result.reason);
    return code;
  }
  if (result.seen == 0) {
    print_error(
        fmt::format("'{}' has joined no world: tranship::launch(f) and RankScope::join() do, and launch({}, f) "
                    "makes ranks of its own",
                    program[0], simulated.ranks));
    return code;
  }
  print(fmt::format("{} of {}: none failed\n", counted(result.seen, "seed"), counted(simulated.ranks, "rank")));
  return result.exit_code;
}

}  // namespace

void add_simulate(CommandLine& line) {
  auto options = std::make_shared<SimulateArguments>();
  Command command = line.add("simulate", "Run a program as simulated ranks, under many orders of transfers");
  command.option("-n,--ranks", options->simulated.ranks, "How many ranks").required().in_range(1, 4096);
  command.option("--seeds", options->simulated.seeds, "How many orders (1000)").positive();
  command.option("--seed", options->simulated.first_seed, "The first of them (1)").not_negative();
  command
      .option("--ranks-per-host", options->simulated.ranks_per_host,
              "How many ranks each of several machines has (one machine has all)")
      .positive();
  command.flag("--messaged", options->messaged, "Ranks cannot load and store each other's memory");
  command.footer(simulate_footer);
  command.runs_program([options](const std::vector<std::string>& program) {
    if (const int code = run(*options, program); code != 0) throw ProgramFailed{code};
  });
}

}  // namespace tranship::cli
